"""Structural probes: dependency trees read out of the states of an encoder.

``text``: sentences and their trees. ``states``: what an encoder makes of their words. ``probes``:
maps from states to trees, trained and scored. ``geometry``: how states lie in their space.
``report``: tables and a page. ``commands``: the command line.
"""
