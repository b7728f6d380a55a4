"""Trained models: as files, as predictions, in MLflow."""
