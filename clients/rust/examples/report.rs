//! A report's lines, written to PostgreSQL by one holder at a time; what was cut short goes on at its next line.
//! docs/applications.md explains it, and shows the same in other languages.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use fencedlease_client::{Client, ClientError, FenceRejection, Holding, ResourceKind};
use tokio::time::timeout;
use tokio_postgres::NoTls;

const USE_FENCE: &str = "SELECT fencedlease.use_fence($1, $2::text, $3)";
const INSERT: &str =
    "INSERT INTO report (run, line, fence) VALUES ($1, $2, $3::text::bigint) ON CONFLICT DO NOTHING";

/// For what has no other limit.
const PATIENCE: Duration = Duration::from_secs(5);

enum Stop {
    TooLate(String),
    Refused(String),
    Unknown,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<ExitCode> {
    // SIGTERM comes at a loss too. The events say why, so it only must not end us at once.
    let mut terminated = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    let client = Client::from_env()?;
    let holding = client.holding().await?;
    let writer = Writer::of(client, &holding);
    let work = async {
        tokio::select! {
            done = writer.write() => done.map(Some),
            _ = terminated.recv() => Ok(None),
        }
    };
    Ok(match holding.run(work).await {
        Err(ended) => stop(10, &format!("cancelled: {ended}")),
        Ok(done) => match done? {
            None => stop(10, "cancelled: SIGTERM"),
            Some(None) => stop(0, "complete"),
            Some(Some(Stop::TooLate(why))) => stop(11, &format!("too late: {why}")),
            Some(Some(Stop::Refused(why))) => stop(12, &format!("refused: {why}")),
            Some(Some(Stop::Unknown)) => stop(13, "unknown: the database did not confirm in time"),
        },
    })
}

fn stop(code: u8, message: &str) -> ExitCode {
    println!("{message}");
    ExitCode::from(code)
}

struct Writer {
    client: Client,
    resource: String,
    fence: fencedlease_client::Fence,
    holder: String,
}

impl Writer {
    fn of(client: Client, holding: &Holding) -> Self {
        let (resource, fence) = (holding.resource().to_owned(), holding.fence());
        Self { client, resource, fence, holder: holding.id().to_string() }
    }

    async fn write(&self) -> anyhow::Result<Option<Stop>> {
        let (run, lines) = (env("REPORT_RUN")?, env("REPORT_LINES")?.parse::<i32>()?);
        let pause = Duration::from_millis(env("REPORT_LINE_MS")?.parse()?);
        let (mut database, connection) =
            soon(tokio_postgres::connect(&env("REPORT_DATABASE")?, NoTls)).await?;
        let serve = async {
            let query = "SELECT coalesce(max(line), 0) + 1 FROM report WHERE run = $1";
            let next = match std::env::var("REPORT_FROM") {
                Ok(line) => line.parse()?,
                Err(_) => soon(database.query_one(query, &[&run])).await?.get(0),
            };
            for line in next..=lines {
                tokio::time::sleep(pause).await; // the work
                if let Some(stop) = self.commit(&mut database, &run, line).await? {
                    return Ok(Some(stop));
                }
            }
            Ok(None)
        };
        tokio::select! {
            done = serve => done,
            broken = connection => Err(broken.err().context("the database closed the connection")?.into()),
        }
    }

    async fn commit(
        &self,
        database: &mut tokio_postgres::Client,
        run: &str,
        line: i32,
    ) -> anyhow::Result<Option<Stop>> {
        let need = Duration::from_millis(env("REPORT_NEED_MS")?.parse()?);
        let permit = match self.client.commit_check(Some(self.fence), Some(need)).await {
            Ok(permit) => permit,
            Err(ClientError::NotAllowed { message, .. }) => return Ok(Some(Stop::TooLate(message))),
            Err(error) => return Err(error.into()),
        };
        // Counted from the question, however late the answer is.
        if permit.remaining().is_zero() {
            return Ok(Some(Stop::TooLate("the answer came when nothing remained".to_owned())));
        }
        let written = async {
            let transaction = database.transaction().await?;
            transaction.execute(USE_FENCE, &[&self.resource, &self.fence.to_string(), &self.holder]).await?;
            transaction.execute(INSERT, &[&run, &line, &self.fence.to_string()]).await?;
            transaction.commit().await
        };
        match timeout(permit.remaining(), written).await {
            Err(_) => Ok(Some(Stop::Unknown)),
            Ok(Ok(())) => Ok(None),
            Ok(Err(error)) if error.code().is_some_and(|code| code.code() == "FL001") => {
                let message = error.as_db_error().map(|it| it.message().to_owned());
                let why = message.clone().unwrap_or_default();
                let resource_kind = ResourceKind::Postgresql;
                let rejection = FenceRejection { fence: self.fence, resource_kind, message };
                if let Err(error) = self.client.fence_rejected(rejection).await {
                    eprintln!("the refusal could not be reported: {error}");
                }
                Ok(Some(Stop::Refused(why)))
            }
            Ok(Err(error)) => Err(error.into()),
        }
    }
}

async fn soon<T>(answer: impl Future<Output = Result<T, tokio_postgres::Error>>) -> anyhow::Result<T> {
    let answer = timeout(PATIENCE, answer).await;
    Ok(answer.with_context(|| format!("the database did not answer within {PATIENCE:?}"))??)
}

fn env(name: &str) -> anyhow::Result<String> {
    std::env::var(name).with_context(|| format!("{name} is not set"))
}
