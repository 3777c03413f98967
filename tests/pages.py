"""Pages of runs, as a program and as a browser reads them."""

import json


def data_of(page):
    """What the script of a page is given."""
    start = page.index('<script id="data" type="application/json">') + len('<script id="data" type="application/json">')
    return json.loads(page[start : page.index("</script>", start)])


def opened(browser, page, width, scheme="light"):
    """A tab with the page, and what it complains of."""
    tab = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    tab.set_default_timeout(60_000)
    said = []
    tab.on("console", lambda message: said.append(message.text))
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.goto(f"file://{page}")
    tab.wait_for_selector(".js-plotly-plot .point")
    return tab, said
