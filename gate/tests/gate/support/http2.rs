//! An HTTP/2 client that says what it sends, frame by frame. It reads nothing.

use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const STREAM: u32 = 1;

/// One request on a connection of its own.
#[derive(Debug)]
pub(crate) struct Http2Request(TcpStream);

impl Http2Request {
    /// Sends its head; without a body that is all of it.
    pub(crate) fn begin(
        address: SocketAddr,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        has_body: bool,
    ) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        let mut request = Self(stream);
        request.write(PREFACE);
        request.frame(SETTINGS, 0, 0, &[]);
        let own = [(":method", method), (":scheme", "http"), (":authority", "gate"), (":path", path)];
        let mut block = Vec::new();
        for (name, value) in own.iter().chain(headers) {
            // A literal that is not indexed, with a new name.
            block.push(0);
            text(&mut block, name);
            text(&mut block, value);
        }
        let flags = END_HEADERS | if has_body { 0 } else { END_STREAM };
        request.frame(HEADERS, flags, STREAM, &block);
        request
    }

    /// A part of the body, or its last.
    pub(crate) fn data(&mut self, bytes: &[u8], is_last: bool) {
        self.frame(DATA, if is_last { END_STREAM } else { 0 }, STREAM, bytes);
    }

    /// Ends the stream, whatever it lacks.
    pub(crate) fn reset(&mut self, code: u32) {
        self.frame(RST_STREAM, 0, STREAM, &code.to_be_bytes());
    }

    fn frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        let head = [&length[1..], &[kind, flags], &stream.to_be_bytes()].concat();
        self.write(&[&head, payload].concat());
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).unwrap();
    }
}

/// A text as HPACK has it, without Huffman's code.
fn text(block: &mut Vec<u8>, text: &str) {
    const ONE_BYTE: usize = 127;
    if text.len() < ONE_BYTE {
        block.push(u8::try_from(text.len()).unwrap());
    } else {
        block.push(u8::try_from(ONE_BYTE).unwrap());
        let mut rest = text.len() - ONE_BYTE;
        while rest >= 128 {
            block.push(u8::try_from(rest % 128).unwrap() | 128);
            rest /= 128;
        }
        block.push(u8::try_from(rest).unwrap());
    }
    block.extend(text.as_bytes());
}
