//! How is Redis reached? One connection, plain or over TLS, that never reconnects, retries or times out by itself.

use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Cmd, ProtocolVersion, PushInfo, RedisConnectionInfo, RedisError, RedisResult,
    ServerError, Value,
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::JoinHandle;

use crate::tls::{Tls, TlsError};
use crate::{CallError, Credentials, Refusal};

/// How much of a server's words is passed on, in characters.
const MAX_WORDS: usize = 500;

/// A single Redis, and which of its databases.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Server {
    /// `host:port`; the name is looked up at each connection.
    pub address: String,
    /// How the connection is encrypted, if it is.
    pub tls: Option<Tls>,
    /// The database number; Redis counts from 0.
    pub database: i64,
    /// What `CLIENT LIST` shows: printable ASCII without spaces. Redis may refuse others, which changes nothing
    /// else.
    pub client_name: String,
}

/// A connection that is set up. Dropping it closes it, whatever is under way.
pub(crate) struct Connection {
    redis: MultiplexedConnection,
    driver: Driver,
}

/// What Redis is spoken to over, plain or encrypted.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// The task that reads and writes the socket; it ends with the connection.
struct Driver(JoinHandle<()>);

// === impl Connection ===

impl Connection {
    /// Connects, logs in and selects the database. Pushes go to `pushes`. Has no deadline of its own.
    pub(crate) async fn open(
        server: &Server,
        credentials: &Credentials,
        pushes: Option<UnboundedSender<PushInfo>>,
    ) -> Result<Self, CallError> {
        let unreachable = |error: std::io::Error| CallError::Connect {
            address: server.address.clone(),
            text: error.to_string(),
        };
        let stream = TcpStream::connect(&server.address).await.map_err(unreachable)?;
        stream.set_nodelay(true).map_err(unreachable)?;
        let stream = server.secured(stream).await?;
        let mut config = AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
        if let Some(pushes) = pushes {
            config = config.set_push_sender(pushes);
        }
        let login = login(server.database, credentials);
        let (redis, driver) = MultiplexedConnection::new_with_config(&login, stream, config).await.map_err(
            |error| match server.judge(error) {
                // What broke while logging in was never a call.
                CallError::Closed { address, text } => CallError::Connect { address, text },
                error => error,
            },
        )?;
        let named = name(redis.clone(), server.client_name.clone());
        let driver = tokio::spawn(async {
            tokio::join!(driver, named);
        });
        Ok(Self { redis, driver: Driver(driver) })
    }

    /// Whether it can still be used, as far as is known.
    pub(crate) fn is_open(&self) -> bool {
        !self.driver.0.is_finished()
    }

    /// Sends one command and waits for its answer, for ever if need be.
    pub(crate) async fn ask(&mut self, server: &Server, command: &Cmd) -> Result<Value, CallError> {
        server.judged(self.redis.send_packed_command(command).await)
    }

    /// Subscribes to a channel; messages come as pushes.
    pub(crate) async fn subscribe(&mut self, server: &Server, channel: &str) -> Result<(), CallError> {
        self.redis.subscribe(channel).await.map_err(|error| server.judge(error))
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

// === impl Server ===

impl Server {
    /// The connection as it is to be spoken over: never in plain text where TLS was asked for.
    async fn secured(&self, stream: TcpStream) -> Result<Box<dyn Stream>, CallError> {
        let Some(tls) = &self.tls else { return Ok(Box::new(stream)) };
        let failed = |error: TlsError| {
            let is_about_the_name = matches!(error, TlsError::Name(_) | TlsError::Handshake(..));
            let remedy = if is_about_the_name { ", or set tls.serverName" } else { "" };
            CallError::Tls { address: self.address.clone(), text: format!("{error}{remedy}") }
        };
        Ok(Box::new(tls.wrap(stream, &self.address).await.map_err(failed)?))
    }

    /// What a reply is worth: an error in it, at any depth, is none that counts.
    pub fn judged(&self, reply: RedisResult<Value>) -> Result<Value, CallError> {
        reply.and_then(Value::extract_error).map_err(|error| self.judge(error))
    }

    fn judge(&self, error: RedisError) -> CallError {
        let address = self.address.clone();
        if error.is_io_error() {
            return CallError::Closed { address, text: error.to_string() };
        }
        match ServerError::try_from(error) {
            Ok(error) => {
                let details = error.details().unwrap_or_default();
                let text = format!("{} {details}", error.code()).trim_end().to_owned();
                CallError::Refused { address, refusal: Refusal::of(&text), text: readable(&text) }
            }
            // The library's own words for a refused SELECT, and for bytes that are no Redis protocol.
            Err(error) if matches!(error.kind(), redis::ErrorKind::Server(_)) => {
                let text = error.to_string();
                CallError::Refused { address, refusal: Refusal::of(&text), text: readable(&text) }
            }
            Err(error) => CallError::Protocol { address, text: readable(&error.to_string()) },
        }
    }
}

/// Words of a server as logs, events and conditions can have them: one line, and not more than a person reads.
fn readable(text: &str) -> String {
    text.chars().map(|char| if char.is_control() { ' ' } else { char }).take(MAX_WORDS).collect()
}

fn login(database: i64, credentials: &Credentials) -> RedisConnectionInfo {
    let mut login = RedisConnectionInfo::default()
        .set_protocol(ProtocolVersion::RESP3)
        .set_db(database)
        .set_skip_set_lib_name();
    if let Some(username) = &credentials.username {
        login = login.set_username(username);
    }
    if let Some(password) = &credentials.password {
        login = login.set_password(password);
    }
    login
}

/// Beside the first call rather than before it, so that it costs no round trip. A user who may not set a name
/// may still hold a lease.
async fn name(mut redis: MultiplexedConnection, name: String) {
    let mut command = Cmd::new();
    command.arg("CLIENT").arg("SETNAME").arg(name);
    if let Err(error) = redis.send_packed_command(&command).await {
        tracing::debug!(%error, "the connection has no name");
    }
}
