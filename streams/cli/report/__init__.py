"""`contextgauge report`: one HTML file of figures, each the answer to a question in SQL.

`figures.toml` lists the figures: title, question, plot, and how many sessions each stands on. The
SQL of the questions is in `streams/edge/tables/sql/questions`, and is printed next to its figure.
"""
