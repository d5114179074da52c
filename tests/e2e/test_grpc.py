"""gRPC through Encore, as docs/GRPC.md says it: a real client and a real server (python3-grpcio), each kind of
call, and how each ends."""

import pathlib
import re
import sys
import threading
import tomllib
import unittest
from concurrent import futures

from harness import Case, eventually, free_port

# Debian's directory of modules, if this is another python of the same version.
sys.path.append("/usr/lib/python3/dist-packages")
try:
    import grpc
except ImportError:
    grpc = None

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "GRPC.md"
LIMIT = 60  # seconds for a call that is to end by itself


class Echo(grpc.GenericRpcHandler if grpc else object):
    """Bytes in, bytes out; no protoc is needed."""

    def __init__(self):
        self.cancelled = threading.Event()
        self.taken = []

    def service(self, details):
        method = details.method.rpartition("/")[2]
        kinds = {"Unary": grpc.unary_unary_rpc_method_handler,
                 "Fails": grpc.unary_unary_rpc_method_handler,
                 "Large": grpc.unary_unary_rpc_method_handler,
                 "Down": grpc.unary_stream_rpc_method_handler,
                 "Hangs": grpc.unary_stream_rpc_method_handler,
                 "Up": grpc.stream_unary_rpc_method_handler,
                 "Both": grpc.stream_stream_rpc_method_handler}
        if method not in kinds:
            return None
        return kinds[method](getattr(self, method.lower()))

    def unary(self, request, context):
        context.send_initial_metadata((("first", "1"),))
        context.set_trailing_metadata((("last", "2"),))
        return request[::-1]

    def fails(self, request, context):
        context.set_trailing_metadata((("reason-bin", b"\0\1"),))
        context.abort(grpc.StatusCode.FAILED_PRECONDITION, "not today: ä")

    def large(self, request, context):
        return request * 2

    def down(self, request, context):
        for i in range(int(request)):
            yield b"message %d" % i

    def hangs(self, request, context):
        context.add_callback(self.cancelled.set)
        yield b"one"
        self.cancelled.wait(LIMIT)

    def up(self, requests, context):
        return b"".join(requests)

    def both(self, requests, context):
        for request in requests:
            yield request.upper()


@unittest.skipIf(grpc is None, "python3-grpcio is not installed")
class Calls(Case):
    def setUp(self):
        super().setUp()
        self.echo = Echo()
        self.pool = futures.ThreadPoolExecutor(16)
        server = grpc.server(self.pool, handlers=(self.echo,))
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        self.addCleanup(lambda: server.stop(0).wait())
        self.server = server
        config = tomllib.loads(re.search(r"```toml\n(.*?)```", PAGE.read_text(), re.S)[1])
        address = f"127.0.0.1:{free_port()}"
        config["listen"] = [{**config["listen"][0], "address": address}]
        config["origin"] = [{**config["origin"][0], "servers": [f"http://127.0.0.1:{port}"]}]
        self.proxy = self.encore(**config)
        channel = grpc.insecure_channel(address)
        self.addCleanup(channel.close)
        self.channel = channel

    def records(self, count):
        return self.proxy.access_records(count)

    def test_unary(self):
        call = self.channel.unary_unary("/t.Echo/Unary")
        response, state = call.with_call(b"abc", timeout=LIMIT)
        self.assertEqual(b"cba", response)
        self.assertIn(("first", "1"), [tuple(each) for each in state.initial_metadata()])
        self.assertIn(("last", "2"), [tuple(each) for each in state.trailing_metadata()])
        record = self.records(1)[0]
        self.assertEqual(("HTTP/2", "HTTP/2"), (record["version"], record["origin_version"]))

    def test_many_at_once_on_one_connection(self):
        call = self.channel.unary_unary("/t.Echo/Unary")
        calls = [call.future(b"%d" % i, timeout=LIMIT) for i in range(200)]
        self.assertEqual([(b"%d" % i)[::-1] for i in range(200)], [c.result() for c in calls])
        metrics = self.proxy.metrics()
        self.assertEqual(200, metrics["encore_origin_http2_streams_total"])
        self.assertLess(metrics["encore_origin_http2_connections_total"], 10)

    def test_large_messages(self):
        message = bytes(range(256)) * 4096
        call = self.channel.unary_unary("/t.Echo/Large")
        self.assertEqual(message * 2, call(message, timeout=LIMIT))

    def test_server_streaming(self):
        call = self.channel.unary_stream("/t.Echo/Down")
        self.assertEqual([b"message %d" % i for i in range(1000)],
                         list(call(b"1000", timeout=LIMIT)))

    def test_client_streaming(self):
        call = self.channel.stream_unary("/t.Echo/Up")
        self.assertEqual(b"".join(b"%d," % i for i in range(1000)),
                         call((b"%d," % i for i in range(1000)), timeout=LIMIT))

    def test_both_ways(self):
        """Each message is sent when the answer to the one before has come."""
        answers = []
        answered = threading.Semaphore(1)

        def messages():
            for word in (b"one", b"two", b"three"):
                answered.acquire()
                yield word
        for answer in self.channel.stream_stream("/t.Echo/Both")(messages(), timeout=LIMIT):
            answers.append(answer)
            answered.release()
        self.assertEqual([b"ONE", b"TWO", b"THREE"], answers)

    def test_an_error_comes_in_the_trailers(self):
        with self.assertRaises(grpc.RpcError) as caught:
            self.channel.unary_unary("/t.Echo/Fails")(b"", timeout=LIMIT)
        error = caught.exception
        self.assertEqual(grpc.StatusCode.FAILED_PRECONDITION, error.code())
        self.assertEqual("not today: ä", error.details())
        self.assertIn(("reason-bin", b"\0\1"), [tuple(each) for each in error.trailing_metadata()])

    def test_an_unknown_method(self):
        with self.assertRaises(grpc.RpcError) as caught:
            self.channel.unary_unary("/t.Echo/Nothing")(b"", timeout=LIMIT)
        self.assertEqual(grpc.StatusCode.UNIMPLEMENTED, caught.exception.code())

    def test_a_cancelled_call_is_cancelled_at_its_server(self):
        call = self.channel.unary_stream("/t.Echo/Hangs")(b"", timeout=LIMIT)
        self.assertEqual(b"one", next(call))
        call.cancel()
        self.assertTrue(self.echo.cancelled.wait(LIMIT))
        self.assertEqual(grpc.StatusCode.CANCELLED, call.code())
        eventually(lambda: self.proxy.metrics()["encore_origin_http2_streams"] == 0,
                   "no stream is left")

    def test_a_deadline_passes(self):
        call = self.channel.unary_stream("/t.Echo/Hangs")(b"", timeout=1)
        with self.assertRaises(grpc.RpcError):
            list(call)
        self.assertEqual(grpc.StatusCode.DEADLINE_EXCEEDED, call.code())
        self.assertTrue(self.echo.cancelled.wait(LIMIT))

    def test_a_server_that_is_away_is_unavailable(self):
        self.server.stop(0).wait()
        with self.assertRaises(grpc.RpcError) as caught:
            self.channel.unary_unary("/t.Echo/Unary")(b"", timeout=LIMIT)
        self.assertEqual(grpc.StatusCode.UNAVAILABLE, caught.exception.code())


if __name__ == "__main__":
    unittest.main()
