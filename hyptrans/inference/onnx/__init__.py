"""Translation with ONNX Runtime: graphs of a model folder, and a search over numpy arrays.

``graphs`` and ``export`` make the graphs with torch; ``engine`` and ``search`` run them without.
"""
