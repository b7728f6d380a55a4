"""What MLflow runs to load the model ("models from code")."""

from wscpml.serving import tracking

tracking.serve()
