"""`python -m psem_model` is `psem`."""

from psem_model.cli import main

if __name__ == "__main__":
    main()
