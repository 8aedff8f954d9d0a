"""One request's race: machine.py decides, driver.py obeys, stream.py hands the winner over."""
