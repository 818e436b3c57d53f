"""Drives one Chromium by its DevTools protocol, over a pair of pipes: no port, no driver, no package beside the browser.

    with Browser() as browser:
        browser.open( "http://127.0.0.1:8000/", width=390, dark=True )
        browser.run( "document.title" )
"""

import base64
import json
import os
import select
import subprocess
import tempfile
import time

from waiting import LIMIT_SECONDS, until

OPTIONS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
           "--disable-component-update", "--disable-sync", "--disable-extensions", "--hide-scrollbars", "--remote-debugging-pipe"]  # fmt: skip


class Browser:
    def __init__(self, *options):
        self.number, self.events, self.rest, self.profile = 0, [], b"", tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        commands, self.out = os.pipe()
        self.back, answers = os.pipe()

        # Chromium reads its descriptor 3 and writes to 4. First both are moved out of the way of these two numbers.
        def descriptors():
            first, second = os.dup(commands), os.dup(answers)
            while first < 5 or second < 5:
                first, second = os.dup(first), os.dup(second)
            os.dup2(first, 3)
            os.dup2(second, 4)

        command = ["chromium", *OPTIONS, "--user-data-dir=" + self.profile.name, *options, "about:blank"]
        self.process = subprocess.Popen(command, preexec_fn=descriptors, close_fds=False, start_new_session=True,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
        os.close(commands)
        os.close(answers)
        # A browser that has only just begun may have no page yet.
        target = until(lambda: [each for each in self.call("Target.getTargets")["targetInfos"] if each["type"] == "page"], "the browser's first page")[0]
        self.session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.call(domain + ".enable")
        self.call("Page.addScriptToEvaluateOnNewDocument", source="var beganDark = matchMedia('(prefers-color-scheme: dark)').matches")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(LIMIT_SECONDS)
        os.close(self.out)
        os.close(self.back)
        self.profile.cleanup()

    def message(self, end):
        while b"\0" not in self.rest:
            ready, _, _ = select.select([self.back], [], [], max(0, end - time.monotonic()))
            piece = os.read(self.back, 1 << 20) if ready else b""
            if not piece:
                raise TimeoutError("the browser does not answer")
            self.rest += piece
        text, self.rest = self.rest.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if hasattr(self, "session"):
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + LIMIT_SECONDS
        while (answer := self.message(end)).get("id") != self.number:
            self.events.append(answer)
        if "error" in answer:
            raise RuntimeError("%s: %s" % (method, answer["error"]["message"]))
        return answer["result"]

    def run(self, script):
        """The value of an expression, or of the promise that it is."""
        answer = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"].get("exception", {}).get("description", answer["exceptionDetails"]["text"]))
        return answer["result"].get("value")

    def size(self, width, height=900, dark=False, media=""):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", media=media, features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def open(self, address, width=1400, dark=False):
        # A page may reload when the system's colors change, so they change between two pages. If Chromium applies them late, the new page reloads, and that is waited for.
        self.navigate("about:blank")
        self.size(width, dark=dark)
        self.follow(address, dark)

    def follow(self, address, dark=False):
        """From a page of the same site, in the colors that it has."""
        self.navigate(address)
        until(lambda: self.is_loaded(dark), "%s is loaded" % address)

    def navigate(self, address):
        first, end = len(self.events), time.monotonic() + LIMIT_SECONDS
        answer = self.call("Page.navigate", url=address)
        if "errorText" in answer:
            raise RuntimeError("%s: %s" % (address, answer["errorText"]))
        while not any(each.get("method") == "Page.frameNavigated" and each["params"]["frame"]["loaderId"] == answer["loaderId"] for each in self.events[first:]):
            self.events.append(self.message(end))

    def is_loaded(self, dark):
        try:
            return self.run("document.readyState == 'complete' && beganDark == %s" % json.dumps(dark))
        except RuntimeError:  # it has just been replaced
            return False

    def requests(self):
        """Every address that was asked for so far."""
        return [each["params"]["request"]["url"] for each in self.events if each.get("method") == "Network.requestWillBeSent"]

    def errors(self):
        """What was written to the console, and what was thrown."""
        said = [each["params"]["entry"]["text"] for each in self.events if each.get("method") == "Log.entryAdded"]
        return said + [each["params"]["exceptionDetails"]["text"] for each in self.events if each.get("method") == "Runtime.exceptionThrown"]

    def picture(self, path, whole=False):
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))
