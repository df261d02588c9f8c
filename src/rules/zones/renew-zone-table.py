#!/usr/bin/python3
"""Writes zone-table.ts from libphonenumber's time zone table.

Run it with Debian's package python3-phonenumbers installed:

    apt-get install python3-phonenumbers
    /usr/bin/python3 src/rules/zones/renew-zone-table.py
"""

import os
import subprocess
import textwrap
from datetime import datetime, timezone

from phonenumbers import tzdata

PACKAGE = "python3-phonenumbers"
TARGET = os.path.join(os.path.dirname(__file__), "zone-table.ts")

HEADER = """\
// The time zones of telephone number prefixes: libphonenumber's table (`timezones/map_data.txt`),
// of {date}, as packaged in Debian's {package} {version}.
// `renew-zone-table.py` writes this file; don't edit it.
//
// {copyright}
// Licensed under the Apache License, Version 2.0 (LICENSE-2.0.txt). Changes: prefixes are grouped
// by their zones, and a prefix with the same zones as the next shorter one is left out.

/**
 * One line for each list of zones, continued on lines with an indent: the zones, then the prefixes
 * of E.164 numbers without `+`. `.` repeats all but the last digit of the prefix before it.
 */
export const zoneTable = `
"""


def is_redundant(prefix):
    shorter = (prefix[:length] for length in range(len(prefix) - 1, 0, -1))
    nearest = next((text for text in shorter if text in tzdata.TIMEZONE_DATA), None)
    return nearest is not None and tzdata.TIMEZONE_DATA[nearest] == tzdata.TIMEZONE_DATA[prefix]


def abbreviated(prefixes):
    before = ""
    for prefix in sorted(prefixes):
        is_sibling = prefix[:-1] == before[:-1] and len(prefix) > 1
        yield f".{prefix[-1]}" if is_sibling else prefix
        before = prefix


def main():
    by_zones = {}
    for prefix, zones in tzdata.TIMEZONE_DATA.items():
        if not is_redundant(prefix):
            by_zones.setdefault(tuple(sorted(zones)), []).append(prefix)
    query = ["dpkg-query", "--show", "--showformat=${Version}", PACKAGE]
    version = subprocess.run(query, check=True, capture_output=True, text=True).stdout
    # The package keeps the time of the release on its files.
    released = datetime.fromtimestamp(os.path.getmtime(tzdata.__file__), timezone.utc)
    with open(tzdata.__file__, encoding="utf-8") as source:
        copyright = next(line[2:].strip() for line in source if line.startswith("# Copyright"))
    header = HEADER.format(
        package=PACKAGE, version=version, date=f"{released:%Y-%m-%d}", copyright=copyright
    )
    with open(TARGET, "w", encoding="utf-8") as file:
        file.write(header)
        for zones, prefixes in sorted(by_zones.items()):
            words = " ".join([*zones, *abbreviated(prefixes)])
            file.write("\n  ".join(textwrap.wrap(words, 98, break_on_hyphens=False)) + "\n")
        file.write("`;\n")


if __name__ == "__main__":
    main()
