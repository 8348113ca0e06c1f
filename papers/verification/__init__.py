"""How far verification oracles fall short, measured on games with exact answers."""
