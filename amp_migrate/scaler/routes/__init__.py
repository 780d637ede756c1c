"""The ways on which a GradScaler travels: results, arguments, closures, and where `amp` itself was handed along."""
