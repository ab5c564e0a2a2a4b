//! A stand-in for the model: it listens on loopback, answers every prompt with one short reply, and keeps what it was sent.
//!
//! What the agent *sent* is the only proof of what it continued; its exit code and its own words are none. Each run of the
//! agent gets a base path of its own, so that many runs share one server and their requests are never mixed up.

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};
use tiny_http::{Header, Method, Request, Response, Server};

/// What the stand-in says to everything.
pub(super) const REPLY: &str = "reply of the stand-in";

/// A request longer than this is cut off: no world of the probe has a history of such a length.
const REQUEST_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// What one run sent, and how it is answered.
#[derive(Default)]
struct Desk {
    sent: Vec<Sent>,
    holds: Duration,
}

/// A request to the model.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    /// The path below the run's own.
    pub(super) path: String,
    /// The messages, as text.
    pub(super) messages: String,
    /// Whether the answer was to be streamed.
    pub(super) streamed: bool,
}

type Desks = Arc<Mutex<BTreeMap<String, Desk>>>;

/// The server. It ends when it is dropped.
pub(super) struct Api {
    server: Arc<Server>,
    address: SocketAddr,
    desks: Desks,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Api {
    /// Listens on a free port of loopback.
    pub(super) fn start() -> io::Result<Self> {
        let server = Server::http("127.0.0.1:0").map_err(io::Error::other)?;
        let address = server.server_addr().to_ip().ok_or_else(|| io::Error::other("no address"))?;
        let (server, desks, ends) = (Arc::new(server), Desks::default(), Arc::new(AtomicBool::new(false)));
        let thread = {
            let (server, desks, ends) = (Arc::clone(&server), Arc::clone(&desks), Arc::clone(&ends));
            std::thread::spawn(move || {
                while !ends.load(Ordering::Relaxed) {
                    // An error here is one connection's.
                    if let Ok(request) = server.recv() {
                        let desks = Arc::clone(&desks);
                        // An answer may be held back for long; the others do not wait for it.
                        std::thread::spawn(move || answer(request, &desks));
                    }
                }
            })
        };
        Ok(Self { server, address, desks, ends, thread: Some(thread) })
    }

    /// The address for a run that answers each prompt after a while.
    pub(super) fn base(&self, run: &str, holds: Duration) -> String {
        lock(&self.desks).insert(run.to_owned(), Desk { sent: Vec::new(), holds });
        format!("http://{}/{run}", self.address)
    }

    /// What a run has sent so far.
    pub(super) fn sent(&self, run: &str) -> Vec<Sent> {
        lock(&self.desks).get(run).map(|desk| desk.sent.clone()).unwrap_or_default()
    }

    /// Forgets a run.
    pub(super) fn forget(&self, run: &str) {
        lock(&self.desks).remove(run);
    }
}

impl Drop for Api {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        self.server.unblock();
        if let Some(thread) = self.thread.take() {
            // It cannot panic: it only hands requests on.
            let _ = thread.join();
        }
    }
}

fn lock(desks: &Mutex<BTreeMap<String, Desk>>) -> MutexGuard<'_, BTreeMap<String, Desk>> {
    // Each change is one call: the map is whole whenever the lock is free.
    desks.lock().unwrap_or_else(PoisonError::into_inner)
}

fn answer(mut request: Request, desks: &Desks) {
    let url = request.url().to_owned();
    let path = url.split('?').next().unwrap_or_default().trim_start_matches('/');
    let (run, path) = path.split_once('/').unwrap_or((path, ""));
    let mut bytes = Vec::new();
    if request.as_reader().take(REQUEST_BYTES_MAX).read_to_end(&mut bytes).is_err() {
        return;
    }
    let body: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let is_prompt = *request.method() == Method::Post && path.ends_with("messages");
    let streamed = body["stream"] == json!(true);
    let holds = match lock(desks).get_mut(run) {
        Some(desk) if is_prompt => {
            let messages = body["messages"].to_string();
            desk.sent.push(Sent { path: path.to_owned(), messages, streamed });
            desk.holds
        }
        Some(_) | None => Duration::ZERO,
    };
    std::thread::sleep(holds);
    // Whoever asked may be gone by now.
    let _ = match (is_prompt, streamed) {
        (true, true) => request.respond(text(stream(&body), "text/event-stream", 200)),
        (true, false) => request.respond(text(message(&body).to_string(), "application/json", 200)),
        (false, _) if path.ends_with("count_tokens") => {
            request.respond(text(json!({"input_tokens": 10}).to_string(), "application/json", 200))
        }
        (false, _) => {
            let error = json!({"type": "error", "error": {"type": "not_found_error", "message": "not here"}});
            request.respond(text(error.to_string(), "application/json", 404))
        }
    };
}

fn text(body: String, kind: &str, status: u16) -> Response<io::Cursor<Vec<u8>>> {
    let response = Response::from_string(body).with_status_code(status);
    match Header::from_bytes("content-type", kind) {
        Ok(header) => response.with_header(header),
        Err(()) => response,
    }
}

fn message(body: &Value) -> Value {
    json!({
        "id": "msg_standin", "type": "message", "role": "assistant", "model": body["model"],
        "content": [{"type": "text", "text": REPLY}], "stop_reason": "end_turn", "stop_sequence": null,
        "usage": {"input_tokens": 10, "output_tokens": 5},
    })
}

/// The same message as a stream of events.
fn stream(body: &Value) -> String {
    let mut begun = message(body);
    begun["content"] = json!([]);
    begun["stop_reason"] = Value::Null;
    let events = [
        ("message_start", json!({"message": begun})),
        ("content_block_start", json!({"index": 0, "content_block": {"type": "text", "text": ""}})),
        ("content_block_delta", json!({"index": 0, "delta": {"type": "text_delta", "text": REPLY}})),
        ("content_block_stop", json!({"index": 0})),
        (
            "message_delta",
            json!({"delta": {"stop_reason": "end_turn", "stop_sequence": null}, "usage": {"output_tokens": 5}}),
        ),
        ("message_stop", json!({})),
    ];
    let lines = events.into_iter().map(|(name, mut event)| {
        event["type"] = json!(name);
        format!("event: {name}\ndata: {event}\n\n")
    });
    lines.collect()
}
