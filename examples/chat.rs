//! A chat room with several server processes: Bates numbers the messages, so all users see the same order.
//!
//!     bates serve     # and in another terminal:
//!     cargo run --example chat -- 127.0.0.1:3001 & cargo run --example chat -- 127.0.0.1:3002 &
//!     curl -d 'hello' 127.0.0.1:3001/lobby; curl -d 'hi there' 127.0.0.1:3002/lobby; curl 127.0.0.1:3001/lobby

use axum::{Router, extract::Path, extract::State, http::StatusCode, routing::get};
use redis::{AsyncCommands as _, aio::ConnectionManager};
use tokio::fs;

/// The processes share Bates and a folder, in which each message is a file named by its number.
#[derive(Clone)]
struct Chat {
    bates: ConnectionManager,
    folder: String,
}

/// Saves a message and returns its number. A message that is sent later gets a higher number.
async fn post(mut chat: State<Chat>, room: Path<String>, text: String) -> Result<String, StatusCode> {
    let folder = room_folder(&chat, &room)?;
    let number: u64 = chat.bates.incr(format!("seq:{}", *room), 1).await.map_err(failed)?;
    fs::create_dir_all(&folder).await.map_err(failed)?;
    // Write to another name first, so that a reader never sees half a message.
    fs::write(format!("{folder}/{number}.new"), text.replace('\n', " ")).await.map_err(failed)?;
    fs::rename(format!("{folder}/{number}.new"), format!("{folder}/{number}")).await.map_err(failed)?;
    Ok(format!("{number}\n"))
}

/// All messages, ordered by number. A late message still appears at its own place.
async fn show(chat: State<Chat>, room: Path<String>) -> Result<String, StatusCode> {
    let mut messages = std::collections::BTreeMap::new();
    let Ok(mut files) = fs::read_dir(room_folder(&chat, &room)?).await else { return Ok(String::new()) };
    while let Some(file) = files.next_entry().await.map_err(failed)? {
        let Ok(number) = file.file_name().to_string_lossy().parse::<u64>() else { continue };
        let text = fs::read_to_string(file.path()).await.map_err(failed)?;
        messages.insert(number, format!("{number} {text}\n"));
    }
    Ok(messages.into_values().collect())
}

/// Allows only plain names, so that a room cannot point outside the folder.
fn room_folder(chat: &Chat, name: &str) -> Result<String, StatusCode> {
    let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_plain.then(|| format!("{}/{name}", chat.folder)).ok_or(StatusCode::NOT_FOUND)
}

fn failed<E>(_: E) -> StatusCode {
    StatusCode::BAD_GATEWAY
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let argument = |nth, default: &str| std::env::args().nth(nth).unwrap_or_else(|| default.to_owned());
    let listener = tokio::net::TcpListener::bind(argument(1, "127.0.0.1:3001")).await?;
    let redis = redis::Client::open(argument(2, "redis://127.0.0.1:6380"))?;
    let chat = Chat { bates: redis.get_connection_manager().await?, folder: argument(3, "chat") };
    println!("listening on {}", listener.local_addr()?);
    Ok(axum::serve(listener, Router::new().route("/{room}", get(show).post(post)).with_state(chat)).await?)
}
