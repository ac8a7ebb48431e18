"""Is a document valid OpenAPI 3.1? A strict reader of the specification's rules, for the specs of srv.openapi.

    openapi_check.py FILE       exit status 1, and a line for each fault with its JSON Pointer

Debian has no OpenAPI validator, but one for JSON Schema (python3-jsonschema), which is asked about schemas where it is
installed. This holds a document against what the specification and its JSON Schema ask of the
objects: names of all fields (unknown ones are faults, `x-` aside), their types, what is required, that references
lead somewhere, that path templates and parameters fit, that operationIds, tags and paths are unique, and that
schemas are JSON Schema 2020-12 of the keywords known here.
"""
import json
import re
import sys

try:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError
except ImportError:
    Draft202012Validator = None

METHODS = {"get", "put", "post", "delete", "options", "head", "patch", "trace"}
TYPES = {"null", "boolean", "object", "array", "number", "string", "integer"}
NAME = re.compile(r"^[a-zA-Z0-9._-]+$")
STYLES = {"path": {"matrix", "label", "simple"}, "query": {"form", "spaceDelimited", "pipeDelimited", "deepObject"},
          "header": {"simple"}, "cookie": {"form"}}

COUNTS = {"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"}
NUMBERS = {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}
TEXTS = {"$ref", "format", "description", "title", "contentMediaType", "contentEncoding", "pattern"}
FLAGS = {"uniqueItems", "deprecated", "readOnly", "writeOnly"}
ANYTHING = {"default", "const"}
LISTS = {"anyOf", "oneOf", "allOf", "prefixItems"}
SINGLE = {"items", "additionalProperties", "not", "contains", "propertyNames"}
MAPS = {"properties", "patternProperties", "$defs"}
OTHERS = {"type", "enum", "required", "examples"}


def is_int(value):
    return isinstance(value, int) and not isinstance(value, bool)


class Checker:
    def __init__(self, document):
        self.document = document
        self.faults = []
        self.ids = set()

    def fault(self, at, message):
        self.faults.append("%s: %s" % (at or "/", message))

    def object(self, value, at, required=(), known=None):
        """VALUE is an object that has REQUIRED and, besides x-, only KNOWN fields."""
        if not isinstance(value, dict):
            self.fault(at, "must be an object, not %r" % (value,))
            return False
        for name in required:
            if name not in value:
                self.fault(at, "lacks %r" % name)
        for name in value:
            if known is not None and name not in known and not name.startswith("x-"):
                self.fault(at, "has the unknown field %r" % name)
        return True

    def fields(self, value, at, kind, *names):
        for name in names:
            if name in value and not isinstance(value[name], kind):
                self.fault(at + "/" + name, "must be a %s" % kind.__name__)

    def list(self, value, at, least=0):
        if isinstance(value, list) and len(value) >= least:
            return value
        self.fault(at, "must be a list of %d or more" % least)
        return []

    def target(self, ref, at):
        if not ref.startswith("#/"):
            self.fault(at, "refers to %r, outside of the document" % ref)
            return None
        found = self.document
        for step in ref[2:].split("/"):
            step = step.replace("~1", "/").replace("~0", "~")
            if not isinstance(found, dict) or step not in found:
                self.fault(at, "refers to %r, which is not there" % ref)
                return None
            found = found[step]
        return found

    def resolved(self, value, at):
        """A Reference Object's target; it has no other fields that count."""
        if isinstance(value, dict) and "$ref" in value:
            self.object(value, at, known={"$ref", "summary", "description"})
            return self.target(value["$ref"], at)
        return value

    # ---- schemas ----

    def whole_schema(self, value, at):
        self.schema(value, at)
        if Draft202012Validator:
            try:
                Draft202012Validator.check_schema(value)
            except SchemaError as err:
                self.fault(at, "is no JSON Schema 2020-12: %s: %s" % (err.json_path, err.message))

    def schema(self, value, at):
        if isinstance(value, bool) or not self.object(value, at):
            return
        known = COUNTS | NUMBERS | TEXTS | FLAGS | ANYTHING | LISTS | SINGLE | MAPS | OTHERS
        for key, inner in value.items():
            where = at + "/" + key
            if key not in known:
                self.fault(at, "is no keyword known here: %r" % key)
            elif key in COUNTS and not (is_int(inner) and inner >= 0):
                self.fault(where, "must be a count")
            elif key in NUMBERS and not (is_int(inner) or isinstance(inner, float)):
                self.fault(where, "must be a number")
            elif key in TEXTS and not isinstance(inner, str):
                self.fault(where, "must be text")
            elif key in FLAGS and not isinstance(inner, bool):
                self.fault(where, "must be true or false")
            elif key in LISTS:
                for i, one in enumerate(self.list(inner, where, 1)):
                    self.schema(one, "%s/%d" % (where, i))
            elif key in SINGLE:
                self.schema(inner, where)
            elif key in MAPS and self.object(inner, where):
                for name, one in inner.items():
                    self.schema(one, where + "/" + name)
        self.schema_lists(value, at)
        if "$ref" in value:
            self.target(value["$ref"], at)
        if "pattern" in value:
            try:
                re.compile(value["pattern"])
            except re.error as err:
                self.fault(at + "/pattern", str(err))

    def schema_lists(self, value, at):
        types = value.get("type", [])
        types = types if isinstance(types, list) else [types]
        if "type" in value and (not types or len(set(types)) != len(types) or not set(types) <= TYPES):
            self.fault(at + "/type", "is no type: %r" % (value["type"],))
        if "enum" in value:
            enum = [json.dumps(one) for one in self.list(value["enum"], at + "/enum", 1)]
            if len(set(enum)) != len(enum):
                self.fault(at + "/enum", "repeats itself")
        if "required" in value:
            names = self.list(value["required"], at + "/required")
            if len(set(names)) != len(names) or not all(isinstance(name, str) for name in names):
                self.fault(at + "/required", "must be names, each once")

    # ---- parts of operations ----

    def content(self, value, at, least=0):
        if not self.object(value, at):
            return
        if len(value) < least:
            self.fault(at, "names no media type")
        for kind, media in value.items():
            where = at + "/" + kind.replace("/", "~1")
            if not re.match(r"^[\w.+*-]+/[\w.+*-]+", kind):
                self.fault(where, "is no media type")
            if self.object(media, where, known={"schema", "example", "examples", "encoding"}) and "schema" in media:
                self.whole_schema(media["schema"], where + "/schema")
            for name, encoding in media.get("encoding", {}).items():
                self.object(encoding, where + "/encoding/" + name,
                            known={"contentType", "headers", "style", "explode", "allowReserved"})

    def parameter(self, value, at):
        known = {"name", "in", "description", "required", "deprecated", "allowEmptyValue", "style", "explode",
                 "allowReserved", "schema", "example", "examples", "content"}
        if not self.object(value, at, ("name", "in"), known):
            return
        self.fields(value, at, str, "name", "in", "description", "style")
        self.fields(value, at, bool, "required", "deprecated", "explode", "allowReserved")
        place = value.get("in")
        if place not in STYLES:
            self.fault(at + "/in", "is no place: %r" % place)
        elif value.get("style") is not None and value["style"] not in STYLES[place]:
            self.fault(at + "/style", "does not fit %s" % place)
        if place == "path" and value.get("required") is not True:
            self.fault(at, "is in the path, so it must be required")
        if place == "header" and value.get("name", "").lower() in ("accept", "content-type", "authorization"):
            self.fault(at, "is a header that OpenAPI says otherwise")
        if ("schema" in value) == ("content" in value):
            self.fault(at, "must have a schema or content")
        if "schema" in value:
            self.whole_schema(value["schema"], at + "/schema")

    def parameters(self, value, at, template):
        seen = set()
        for i, given in enumerate(self.list(value, at)):
            where = "%s/%d" % (at, i)
            parameter = self.resolved(given, where)
            self.parameter(parameter, where)
            if isinstance(parameter, dict):
                key = (parameter.get("in"), parameter.get("name"))
                if key in seen:
                    self.fault(where, "is there twice: %r" % (key,))
                seen.add(key)
        named = {name for place, name in seen if place == "path"}
        if named != set(re.findall(r"\{([^}]*)\}", template)):
            self.fault(at, "do not fit the path %s: %s" % (template, sorted(named)))

    def response(self, given, at):
        value = self.resolved(given, at)
        if not self.object(value, at, ("description",), {"description", "headers", "content", "links"}):
            return
        self.fields(value, at, str, "description")
        if "content" in value:
            self.content(value["content"], at + "/content")

    def server(self, value, at):
        if not self.object(value, at, ("url",), {"url", "description", "variables"}):
            return
        self.fields(value, at, str, "url", "description")
        variables = value.get("variables", {})
        if set(re.findall(r"\{([^}]*)\}", value.get("url", ""))) != set(variables):
            self.fault(at, "its variables are not those of its URL")
        for name, variable in variables.items():
            where = at + "/variables/" + name
            if self.object(variable, where, ("default",), {"default", "enum", "description"}):
                self.fields(variable, where, str, "default", "description")

    def security(self, value, at):
        schemes = self.document.get("components", {}).get("securitySchemes", {})
        for i, asked in enumerate(self.list(value, at)):
            if not self.object(asked, "%s/%d" % (at, i)):
                continue
            for name, scopes in asked.items():
                if name not in schemes:
                    self.fault("%s/%d" % (at, i), "no scheme is called %r" % name)
                self.list(scopes, "%s/%d/%s" % (at, i, name))

    def operation(self, value, at, template):
        known = {"tags", "summary", "description", "externalDocs", "operationId", "parameters", "requestBody",
                 "responses", "callbacks", "deprecated", "security", "servers"}
        if not self.object(value, at, ("responses",), known):
            return
        self.fields(value, at, str, "summary", "description", "operationId")
        self.fields(value, at, bool, "deprecated")
        if value.get("operationId") in self.ids:
            self.fault(at, "the operationId %r is taken" % value["operationId"])
        self.ids.add(value.get("operationId", at))
        for tag in self.list(value.get("tags", []), at + "/tags"):
            if not isinstance(tag, str):
                self.fault(at + "/tags", "must be names")
        self.parameters(value.get("parameters", []), at + "/parameters", template)
        if "requestBody" in value:
            body = value["requestBody"]
            if self.object(body, at + "/requestBody", ("content",), {"description", "content", "required"}):
                self.fields(body, at + "/requestBody", bool, "required")
                self.content(body.get("content"), at + "/requestBody/content", 1)
        responses = value.get("responses")
        if self.object(responses, at + "/responses"):
            if not responses:
                self.fault(at + "/responses", "there is none")
            for status, response in responses.items():
                if not re.match(r"^([1-5](\d\d|XX)|default)$", status):
                    self.fault(at + "/responses", "%r is no status" % status)
                self.response(response, at + "/responses/" + status)
        if "security" in value:
            self.security(value["security"], at + "/security")
        for i, server in enumerate(self.list(value.get("servers", []), at + "/servers")):
            self.server(server, "%s/servers/%d" % (at, i))

    # ---- the document ----

    def paths(self, paths):
        shapes = {}
        if not self.object(paths, "/paths"):
            return
        for template, item in paths.items():
            at = "/paths/" + template.replace("~", "~0").replace("/", "~1")
            if not template.startswith("/"):
                self.fault(at, "must begin with a slash")
            shape = re.sub(r"\{[^}]*\}", "{}", template)
            if shape in shapes:
                self.fault(at, "is the same as " + shapes[shape])
            shapes[shape] = template
            if self.object(item, at, known=METHODS | {"summary", "description", "servers", "parameters"}):
                for method in METHODS & set(item):
                    self.operation(item[method], at + "/" + method, template)

    def components(self, components):
        if not self.object(components, "/components", known={"schemas", "responses", "parameters", "securitySchemes"}):
            return
        for kind, members in components.items():
            if self.object(members, "/components/" + kind):
                for name in members:
                    if not NAME.match(name):
                        self.fault("/components/" + kind, "%r is no name" % name)
        for name, one in components.get("schemas", {}).items():
            self.whole_schema(one, "/components/schemas/" + name)
        for name, one in components.get("responses", {}).items():
            self.response(one, "/components/responses/" + name)
        for name, one in components.get("securitySchemes", {}).items():
            at = "/components/securitySchemes/" + name
            known = {"type", "description", "name", "in", "scheme", "bearerFormat"}
            if self.object(one, at, ("type",), known):
                needs = {"http": {"scheme"}, "apiKey": {"name", "in"}}.get(one["type"])
                if needs is None or not needs <= set(one):
                    self.fault(at, "is no security scheme")

    def check(self):
        known = {"openapi", "info", "jsonSchemaDialect", "servers", "paths", "webhooks", "components", "security",
                 "tags", "externalDocs"}
        if not self.object(self.document, "", ("openapi", "info", "paths"), known):
            return self.faults
        if not re.match(r"^3\.1\.\d+$", str(self.document.get("openapi"))):
            self.fault("/openapi", "must be 3.1.x")
        info = self.document.get("info")
        if self.object(info, "/info", ("title", "version"), {"title", "version", "summary", "description"}):
            self.fields(info, "/info", str, "title", "version")
        if "servers" in self.document:
            for i, server in enumerate(self.list(self.document["servers"], "/servers", 1)):
                self.server(server, "/servers/%d" % i)
        tags = [tag.get("name") for tag in self.list(self.document.get("tags", []), "/tags")]
        if len(set(tags)) != len(tags) or None in tags:
            self.fault("/tags", "must have names, each once")
        self.paths(self.document.get("paths"))
        self.components(self.document.get("components", {}))
        return self.faults


def main(path):
    with open(path, encoding="utf-8") as source:
        faults = Checker(json.load(source)).check()
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
