"""What could be otherwise so that a job starts: one thing relaxed at a time, each as a change of objects that somebody could make."""
