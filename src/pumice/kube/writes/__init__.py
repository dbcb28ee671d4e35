"""What leaves: effects are ordered, performed by a fixed number of workers, fenced by the lease, and answered."""
