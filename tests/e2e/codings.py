"""Decoders of the content codings that a client may be sent, from the libraries that curl and
browsers use. They are strict: what does not end, or has something behind its end, is a fault."""

import ctypes
import ctypes.util
import zlib


class Broken(Exception):
    """Not the whole of a coded content."""


class ZstdBuffer(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("size", ctypes.c_size_t), ("position", ctypes.c_size_t)]


def gunzip(data, whole=True):
    decoder = zlib.decompressobj(31)
    try:
        text = decoder.decompress(data)
    except zlib.error as error:
        raise Broken(str(error)) from error
    if whole and (not decoder.eof or decoder.unused_data):
        raise Broken("it does not end where it ends")
    return text


def unbrotli(data, whole=True):
    library = ctypes.CDLL("libbrotlidec.so.1")
    library.BrotliDecoderCreateInstance.restype = ctypes.c_void_p
    state = ctypes.c_void_p(library.BrotliDecoderCreateInstance(None, None, None))
    text, room = [], ctypes.create_string_buffer(1 << 16)
    left, source = ctypes.c_size_t(len(data)), ctypes.create_string_buffer(data, len(data))
    at = ctypes.cast(source, ctypes.c_void_p)
    try:
        while True:
            free, to = ctypes.c_size_t(len(room)), ctypes.cast(room, ctypes.c_void_p)
            result = library.BrotliDecoderDecompressStream(
                state, ctypes.byref(left), ctypes.byref(at), ctypes.byref(free), ctypes.byref(to),
                None)
            text.append(room.raw[:len(room) - free.value])
            if result == 1 or not library.BrotliDecoderHasMoreOutput(state):
                break
    finally:
        library.BrotliDecoderDestroyInstance(state)
    if result == 0 or (whole and (result != 1 or left.value)):
        raise Broken(f"brotli says {result}")
    return b"".join(text)


def unzstd(data, whole=True):
    library = ctypes.CDLL("libzstd.so.1")
    library.ZSTD_createDCtx.restype = ctypes.c_void_p
    library.ZSTD_decompressStream.restype = ctypes.c_size_t
    context = ctypes.c_void_p(library.ZSTD_createDCtx())
    source, room = ctypes.create_string_buffer(data, len(data)), ctypes.create_string_buffer(1 << 16)
    given = ZstdBuffer(ctypes.cast(source, ctypes.c_void_p), len(data), 0)
    text, left = [], 1
    try:
        while True:
            made = ZstdBuffer(ctypes.cast(room, ctypes.c_void_p), len(room), 0)
            left = library.ZSTD_decompressStream(context, ctypes.byref(made), ctypes.byref(given))
            if library.ZSTD_isError(ctypes.c_size_t(left)):
                raise Broken("zstd says that it is none")
            text.append(room.raw[:made.position])
            if left == 0 or (given.position == given.size and made.position < made.size):
                break
    finally:
        library.ZSTD_freeDCtx(context)
    if whole and (left != 0 or given.position != given.size):
        raise Broken("it does not end where it ends")
    return b"".join(text)


DECODERS = {None: lambda data, whole=True: data, "gzip": gunzip, "br": unbrotli, "zstd": unzstd}


def decoded(answer, whole=True):
    """The content of a response, whatever it is coded in."""
    coding = [value for name, value in answer.fields if name == "content-encoding"]
    return DECODERS[coding[0] if coding else None](answer.body, whole)
