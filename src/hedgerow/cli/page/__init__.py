"""The page behind `--report`: one HTML file without script or network, for light and dark screens, phones and paper."""
