"""Write runs to other tools: MLflow and Prometheus."""
