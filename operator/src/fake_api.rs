//! A small model of the API server for tests: objects by path, with the resourceVersion rules that our
//! writers depend on.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Method, Request, StatusCode};
use axum::response::{IntoResponse, Response};
use kube::Client;
use serde_json::{Value, json};

/// What the server keeps and counts.
#[derive(Clone, Default)]
pub(crate) struct FakeApi(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    objects: BTreeMap<String, Value>,
    version: u64,
    requests: Vec<(Method, String, Value)>,
    interfere: Vec<(String, Value)>,
    review: Value,
}

impl FakeApi {
    pub(crate) fn client(&self) -> Client {
        let api = self.clone();
        let router = Router::new().fallback(move |request: Request<Body>| {
            let api = api.clone();
            async move { api.answer(request).await }
        });
        Client::new(router, "default")
    }

    /// Puts an object at the path of its URL.
    pub(crate) fn put(&self, path: &str, object: Value) {
        self.0.lock().unwrap().store(path, object);
    }

    pub(crate) fn get(&self, path: &str) -> Option<Value> {
        self.0.lock().unwrap().objects.get(path).cloned()
    }

    pub(crate) fn remove(&self, path: &str) {
        self.0.lock().unwrap().objects.remove(path);
    }

    /// Just before the next write to `path` arrives, somebody else puts `object` there.
    pub(crate) fn interfere(&self, path: &str, object: Value) {
        self.0.lock().unwrap().interfere.push((path.to_owned(), object));
    }

    /// What every TokenReview is answered with.
    pub(crate) fn review(&self, status: Value) {
        self.0.lock().unwrap().review = status;
    }

    /// Every request that was no read: method, path and body.
    pub(crate) fn writes(&self) -> Vec<(Method, String, Value)> {
        let state = self.0.lock().unwrap();
        state.requests.iter().filter(|(method, ..)| method != Method::GET).cloned().collect()
    }

    async fn answer(&self, request: Request<Body>) -> Response {
        let (parts, body) = request.into_parts();
        let body = to_bytes(body, usize::MAX).await.unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let path = parts.uri.path().to_owned();
        let mut state = self.0.lock().unwrap();
        state.requests.push((parts.method.clone(), path.clone(), body.clone()));
        let target = match parts.method {
            Method::POST => format!("{path}/{}", body["metadata"]["name"].as_str().unwrap_or_default()),
            _ => path.trim_end_matches("/status").to_owned(),
        };
        if parts.method != Method::GET
            && let Some(index) = state.interfere.iter().position(|(path, _)| *path == target)
        {
            let (path, object) = state.interfere.remove(index);
            state.store(&path, object);
        }
        state.carry_out(&parts.method, &path, &target, body)
    }
}

impl State {
    fn store(&mut self, path: &str, mut object: Value) -> Value {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.objects.insert(path.to_owned(), object.clone());
        object
    }

    fn carry_out(&mut self, method: &Method, path: &str, target: &str, body: Value) -> Response {
        let present = self.objects.get(target).cloned();
        match (method, present) {
            (&Method::GET, Some(object)) => axum::Json(object).into_response(),
            (&Method::GET, None) if self.is_collection(path) => {
                let items: Vec<&Value> = self.objects.values().collect();
                axum::Json(json!({"metadata": {}, "items": items})).into_response()
            }
            (&Method::POST, _) if path.ends_with("/tokenreviews") => {
                let review = json!({"metadata": {}, "spec": body["spec"], "status": self.review});
                (StatusCode::CREATED, axum::Json(review)).into_response()
            }
            (&Method::POST, None) => {
                let object = self.store(target, body);
                (StatusCode::CREATED, axum::Json(object)).into_response()
            }
            (&Method::POST, Some(_)) => failure(StatusCode::CONFLICT, "AlreadyExists"),
            (_, None) => failure(StatusCode::NOT_FOUND, "NotFound"),
            (&Method::DELETE, Some(object)) => {
                let wanted = &body["preconditions"]["uid"];
                if !wanted.is_null() && *wanted != object["metadata"]["uid"] {
                    return failure(StatusCode::CONFLICT, "Conflict");
                }
                self.objects.remove(target);
                axum::Json(object).into_response()
            }
            (_, Some(object)) => {
                let version = &body["metadata"]["resourceVersion"];
                if !version.is_null() && *version != object["metadata"]["resourceVersion"] {
                    return failure(StatusCode::CONFLICT, "Conflict");
                }
                axum::Json(self.store(target, body)).into_response()
            }
        }
    }

    fn is_collection(&self, path: &str) -> bool {
        path.ends_with("/pods") && !self.objects.contains_key(path)
    }
}

fn failure(code: StatusCode, reason: &str) -> Response {
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": reason, "reason": reason, "code": code.as_u16()});
    (code, axum::Json(status)).into_response()
}
