"""The description of the admin listener: docs/openapi.json is what is served, each endpoint of it
answers at a real proxy as it says, and none is missing."""

import http.client
import json
import pathlib
import re
import unittest
import urllib.parse

from client import get
from harness import Case
from origin import Origin, fresh

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOKEN = "0123456789abcdef0123"
# Endpoints that cannot succeed here; others must answer 200. A journal of decisions refuses upgrades.
OTHERWISE = {("post", "/filter/adopt"): 400, ("post", "/upgrade"): 409}
LAST = ("post", "/drain")


class OpenApi(Case):
    def setUp(self):
        super().setUp()
        secret = self.directory / "token"
        secret.write_text(TOKEN + "\n")
        secret.chmod(0o600)
        self.origin = Origin(self, {"/a": fresh(b"a")})
        self.proxy = self.encore(
            admin={"token_file": str(secret)}, filters={"publish": ["changed"]},
            admission={"policy": "second-hit"}, log={"decisions": str(self.directory / "decisions")})
        status, text = self.proxy.admin("/api/openapi.json")
        self.assertEqual(200, status)
        self.served = json.loads(text)
        self.text = text

    def ask(self, method, path, fields=()):
        connection = http.client.HTTPConnection("127.0.0.1", self.proxy.admin_port, timeout=60)
        try:
            connection.request(method.upper(), path, headers=dict(fields))
            response = connection.getresponse()
            return response.status, response.getheader("Content-Type"), response.read()
        finally:
            connection.close()

    def operations(self):
        for path, methods in self.served["paths"].items():
            for method, operation in methods.items():
                yield method, path, operation

    def example_of(self, path, operation):
        query = []
        for parameter in operation["parameters"]:
            if parameter["in"] == "path":
                path = path.replace("{" + parameter["name"] + "}", parameter["example"])
            elif "example" in parameter:
                values = parameter["example"]
                for value in values if isinstance(values, list) else [values]:
                    query.append((parameter["name"], value))
            else:
                self.assertFalse(parameter["required"], parameter)
        return path + ("?" + urllib.parse.urlencode(query) if query else "")

    def test_the_file_is_what_is_served(self):
        written = (ROOT / "docs" / "openapi.json").read_text()
        self.assertEqual(written, self.text, "make it with: curl 127.0.0.1:3129/api/openapi.json")

    def test_it_is_a_description_by_openapi_3_1(self):
        self.assertEqual("3.1.0", self.served["openapi"])
        self.assertEqual({"title", "version", "description"}, set(self.served["info"]))
        seen = set()
        for method, path, operation in self.operations():
            self.assertIn(method, ("get", "post"))
            self.assertTrue(path.startswith("/"))
            self.assertNotIn((method, path), seen)
            seen.add((method, path))
            self.assertIn("200", operation["responses"])
            for parameter in operation["parameters"]:
                self.assertIn(parameter["in"], ("query", "path"))
                self.assertIn("type", parameter["schema"])
            for scheme in operation["security"]:
                self.assertLessEqual(set(scheme), set(self.served["components"]["securitySchemes"]))

    def test_each_endpoint_answers_as_it_says(self):
        get(self.proxy.port, self.origin.url("/a"))
        token = {"Authorization": f"Bearer {TOKEN}"}
        operations = sorted(self.operations(), key=lambda each: (each[0], each[1]) == LAST)
        self.assertGreater(len(operations), 20)
        for method, path, operation in operations:
            with self.subTest(method=method, path=path):
                wanted = OTHERWISE.get((method, path), 200)
                if path in ("/api/intercept", "/fleet"):
                    wanted = 404  # no host is decrypted, and there is one node
                status, kind, body = self.ask(method, self.example_of(path, operation), token)
                self.assertEqual(wanted, status, body)
                described = operation["responses"][str(status)]["content"]
                self.assertTrue({kind.split(";")[0], "*/*"} & set(described), kind)
                if kind == "application/json":
                    self.assertIsInstance(json.loads(body), dict)
        self.proxy.ending = self.proxy.process
        self.assertEqual(0, self.proxy.wait_for_exit())

    def test_each_form_of_a_response(self):
        for method, path, operation in self.operations():
            for parameter in operation["parameters"]:
                for choice in parameter["schema"].get("enum", []):
                    if path == "/api/intercept":
                        continue
                    with self.subTest(path, choice=choice):
                        example = self.example_of(path, operation)
                        separator = "&" if "?" in example else "?"
                        status, kind, body = self.ask(
                            method, f"{example}{separator}{parameter['name']}={choice}")
                        self.assertEqual(200, status, body)
                        self.assertEqual({"json": "application/json", "text": "text/plain"}[choice],
                                         kind.split(";")[0])

    def test_every_error_that_is_described_without_the_right_query_or_token(self):
        for method, path, operation in self.operations():
            if path == "/filters/{file}":
                continue
            with self.subTest(method=method, path=path):
                other = "POST" if method == "get" else "GET"
                fields = {"Authorization": f"Bearer {TOKEN}"}
                self.assertEqual(405, self.ask(other, path, fields)[0])
                if "403" in operation["responses"]:
                    status, _, _ = self.ask(method, path, {"Host": "evil.example"})
                    self.assertEqual(403, status)
                if operation["security"] == [{"token": []}]:
                    self.assertEqual(401, self.ask(method, path)[0])

    def test_no_endpoint_is_missing(self):
        """Those of the page of a wrong path, and those that the documents name."""
        status, text = self.proxy.admin("/no-such-page")
        self.assertEqual(404, status)
        named = set(re.findall(r" (/\S*)", text.split("Endpoints:")[1]))
        self.assertEqual(set(self.served["paths"]), named)
        documents = "\n".join(page.read_text() for page in (ROOT / "docs").glob("*.md"))
        for path in set(re.findall(r"`(?:GET |POST )?(/(?:api/[a-z.]+|metrics|healthz|readyz|purge|filter))`",
                                   documents)):
            self.assertIn(path, self.served["paths"])


if __name__ == "__main__":
    unittest.main()
