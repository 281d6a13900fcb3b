"""The verbs of the service: who asks is an argument, and is looked at first."""
