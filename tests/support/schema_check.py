"""What JSON Schema 2020-12 says of schemas and values, for the specs that hold srv's rules against it.

    schema_check.py FILE        FILE: a JSON list of { "schema": ..., "values": [...] }

Prints a JSON list with, for each, true or false for each value; or what is wrong with the schema, a text. Formats are
asserted as far as python3-jsonschema knows them by itself. `{"$text": "..."}` stands for the value that JSON text writes,
so that numbers arrive as they are written.
"""
import json
import sys

from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import SchemaError

FORMATS = FormatChecker(("ipv4", "ipv6", "date", "email", "uuid"))


def judged(schema, texts):
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as err:
        return "%s: %s" % (err.json_path, err.message)
    validator = Draft202012Validator(schema, format_checker=FORMATS)
    return [validator.is_valid(json.loads(text)) for text in texts]


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        cases = json.load(file)
    json.dump([judged(case["schema"], case["values"]) for case in cases], sys.stdout)


main()
