"""How far raters, and judges in place of raters, agree beyond chance."""
