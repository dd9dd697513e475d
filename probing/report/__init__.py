"""Write the report of a probing run: one HTML file that opens offline."""

from probing.report.data import Example, ModelResult, Prediction, Report
from probing.report.page import write_report

__all__ = ["Example", "ModelResult", "Prediction", "Report", "write_report"]
