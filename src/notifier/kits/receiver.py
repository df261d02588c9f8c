# A receiver of notifications on Flask.
# WEBHOOK_SECRET=whsec_… python3 receiver.py

import hashlib
import hmac
import json
import os
import re
import threading
import time

from flask import Flask, request

secret = os.environ["WEBHOOK_SECRET"].encode()
tolerance_s = 300

app = Flask(__name__)
app.config["MAX_CONTENT_LENGTH"] = 1024 * 1024

# In production, use a table that all receiving processes share. Keep a call's row until no replay
# of its notifications can arrive.
calls = {}
lock = threading.Lock()


def is_signed(raw_body, header):
    """Whether the timestamp is recent and one of the signatures matches the raw body.

    There are two signatures while the secret is being rotated.
    """
    parts = [part.strip().split("=", 1) for part in header.split(",") if "=" in part]
    t = next((value for name, value in parts if name == "t"), "")
    if not re.fullmatch("[0-9]{1,12}", t) or abs(time.time() - int(t)) > tolerance_s:
        return False
    expected = hmac.new(secret, t.encode() + b"." + raw_body, hashlib.sha256).hexdigest().encode()
    return any(name == "v1" and hmac.compare_digest(expected, value.encode()) for name, value in parts)


def take(notification):
    """Ignores repetitions, and keeps late notifications from overwriting newer ones."""
    with lock:
        call = calls.setdefault(notification["callId"], {"sequence": 0, "seen": set()})
        if notification["eventId"] in call["seen"]:
            return "duplicate"
        call["seen"].add(notification["eventId"])
        if len(calls) > 10_000:
            del calls[next(iter(calls))]
        if notification["sequence"] < call["sequence"]:
            return "late"
        call["sequence"] = notification["sequence"]
        # An event that `notifyEvents` selected is not a status of the call.
        if notification["status"] != "Event":
            call["status"] = notification["status"]
        return "applied"


@app.post("/")
def receive():
    # The signature covers the raw body, which `request.json` does not preserve.
    raw_body = request.get_data()
    if not is_signed(raw_body, request.headers.get("Gateway-Signature", "")):
        return "", 401
    # Respond first and do the work afterwards, because the gateway waits at most 10 s.
    return take(json.loads(raw_body))


if __name__ == "__main__":
    app.run(host="127.0.0.1", port=int(os.environ.get("PORT", 4000)), threaded=True)
