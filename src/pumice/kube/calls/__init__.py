"""Requests and their answers: the verbs of the API, limited in rate, repeated where that is safe, with every way a request can end told apart."""
