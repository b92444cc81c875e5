//! A backend that does as little as one can: it reads each request whole and answers 200. A thread for each
//! connection, so that what is measured is the proxy in front.

use std::io::{self, BufReader, Read, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

use anyhow::Context as _;

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
const BUFFER_BYTES: usize = 256 * 1024;

/// Starts it on a free port of 127.0.0.1, where it serves until the program ends.
pub fn start() -> anyhow::Result<SocketAddr> {
    let socket = TcpListener::bind("127.0.0.1:0").context("cannot start the backend")?;
    let address = socket.local_addr()?;
    thread::Builder::new().name("sink".to_owned()).spawn(move || {
        for stream in socket.incoming().map_while(Result::ok) {
            thread::spawn(move || {
                if let Err(error) = serve(&stream) {
                    eprintln!("the backend ended a connection: {error}");
                }
            });
        }
    })?;
    Ok(address)
}

fn serve(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::with_capacity(BUFFER_BYTES, stream);
    let mut scratch = vec![0; BUFFER_BYTES];
    while let Some(length) = head(&mut reader)? {
        let mut left = length;
        while left > 0 {
            let most = usize::try_from(left).unwrap_or(usize::MAX).min(scratch.len());
            match reader.read(&mut scratch[..most])? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => left -= read as u64,
            }
        }
        (&*stream).write_all(ANSWER)?;
    }
    Ok(())
}

/// The body's length after a request's head; `None` where the client has ended the connection. A proxy that ends
/// with requests unsent resets it, which is no failure of a measurement either.
fn head(reader: &mut impl io::BufRead) -> io::Result<Option<u64>> {
    let mut length = 0;
    let mut line = Vec::with_capacity(256);
    loop {
        line.clear();
        match reader.read_until(b'\n', &mut line) {
            Ok(0) => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(None),
            Err(error) => return Err(error),
            Ok(_) => {}
        }
        if line == b"\r\n" {
            return Ok(Some(length));
        }
        let text = std::str::from_utf8(&line).map_err(|_| io::ErrorKind::InvalidData)?;
        let Some((name, value)) = text.split_once(':') else { continue };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().map_err(|_| io::ErrorKind::InvalidData)?;
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            return Err(io::Error::other("a body of unknown length was not to be measured"));
        }
    }
}
