"""Figures on a real API server: what the whole way from a pending pod to a binding costs, beside what binding alone costs."""
