"""Predictions: what a plan holds and sends, in exact numbers and in closed forms."""

from psem_model.check.placements import NotRealisable
from psem_model.predict.states import Prediction, predict, predict_many

__all__ = ["NotRealisable", "Prediction", "predict", "predict_many"]
