"""HTTP requests, against the test host."""

import json
import unittest

from vmhost_plugin import Controller, Description, Error, HttpGrant, HttpHeader, http
from vmhost_plugin.testing import TestHost

URL = "https://api.example.com/machines"


class TestHttp(unittest.TestCase):
    def setUp(self) -> None:
        made = http.Response(201, [("x-id", "7")], b'{"id": 7}')
        answers = [("GET", URL, http.Response(404)), ("GET", URL, http.Response(200)), ("POST", URL, made)]
        self.host = self.enterContext(TestHost(responses=answers))

    def test_a_response_has_its_status(self) -> None:
        response = http.post(URL, json={"size": "small"}, headers={"x-a": "b"})
        self.assertEqual((response.status, response.ok, response.header("X-Id")), (201, True, "7"))
        self.assertEqual(response.success().json(), {"id": 7})
        sent = self.host.requests[0]
        self.assertEqual(json.loads(sent.body), {"size": "small"})
        self.assertIn(("content-type", "application/json"), sent.headers)

    def test_equal_requests_are_answered_in_order(self) -> None:
        with self.assertRaisesRegex(Error, "status 404"):
            http.get(URL).success()
        self.assertEqual([http.get(URL).status for _ in range(2)], [200, 200])

    def test_what_has_no_answer_is_not_sent(self) -> None:
        with self.assertRaises(http.HttpError) as raised:
            http.delete(URL)
        self.assertEqual(raised.exception.code, "not-sent")

    def test_a_grant_is_part_of_the_description(self) -> None:
        token = HttpHeader("Authorization", prefix="Bearer ", secret=("default", "cloud", "token"))
        grant = HttpGrant("api.example.com", methods=["GET", "POST"], path_prefix="/machines", headers=[token])
        text = Description("cloud", [Controller("c", once=True)], http=[grant]).to_json()
        self.assertEqual(
            json.loads(text)["http"],
            [
                {
                    "host": "api.example.com",
                    "methods": ["GET", "POST"],
                    "pathPrefix": "/machines",
                    "headers": [{"name": "Authorization", "prefix": "Bearer ", "secret": {"namespace": "default", "name": "cloud", "key": "token"}}],
                }
            ],
        )
