# Examples, units and the completion are installed from here.
