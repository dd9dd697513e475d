"""Translation with ONNX Runtime: ``export`` makes graphs by torch, ``engine`` runs them without."""
