"""Self-contained HTML files: markup, plots as SVG, and a document that needs nothing else."""
