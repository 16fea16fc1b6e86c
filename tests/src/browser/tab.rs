//! A tab of a browser: it opens an address, looks for what a user sees, clicks and types as a user
//! does, and reports errors of the page.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Value, json};

use super::Browser;
use crate::wait::eventually;

/// Finds the visible elements of a selector whose text, or whose name for screen readers, equals or
/// contains a text. Of several, returns the last one, which is inside the others.
const FIND: &str = r"(selector, text) => {
  const plain = text => text.replace(/\s+/g, ' ').trim();
  const all = [...document.querySelectorAll(selector)].filter(node => node.checkVisibility());
  const name = node => plain(node.getAttribute('aria-label') || node.innerText || node.textContent);
  return all.findLast(node => name(node) === text) || all.findLast(node => name(node).includes(text));
}";

/// The height of all tabs.
const HEIGHT: u32 = 900;

/// The colours that the user prefers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Dark text on a light ground.
    Light,
    /// Light text on a dark ground.
    Dark,
}

/// A tab that shows an address.
pub struct Tab<'b> {
    browser: &'b mut Browser,
    session: String,
    origin: String,
}

impl Browser {
    /// Opens an address in a new tab of this width.
    pub async fn open(&mut self, url: &str, width: u32, scheme: Scheme) -> Result<Tab<'_>> {
        let blank = json!({ "url": "about:blank" });
        let target = self.send(None, "Target.createTarget", blank).await?;
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let attached = self.send(None, "Target.attachToTarget", attach).await?;
        let session = attached["sessionId"].as_str().context("a session")?;
        let path = url.find("/#").context("a URL with a fragment")?;
        let mut tab = Tab {
            browser: self,
            session: session.to_owned(),
            origin: url[..path].to_owned(),
        };
        for domain in ["Page", "Runtime", "Log", "Network"] {
            tab.send(&format!("{domain}.enable"), json!({})).await?;
        }
        let focused = json!({ "enabled": true });
        tab.send("Emulation.setFocusEmulationEnabled", focused)
            .await?;
        tab.resize(width, scheme).await?;
        tab.send("Page.navigate", json!({ "url": url })).await?;
        tab.until("document.readyState === 'complete' && location.protocol === 'http:'")
            .await?;
        Ok(tab)
    }
}

impl Tab<'_> {
    async fn send(&mut self, method: &str, params: Value) -> Result<Value> {
        let session = self.session.clone();
        self.browser.send(Some(&session), method, params).await
    }

    /// Gives the tab another width and scheme.
    pub async fn resize(&mut self, width: u32, scheme: Scheme) -> Result<()> {
        let size = json!({
            "width": width, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": width < 500,
        });
        self.send("Emulation.setDeviceMetricsOverride", size)
            .await?;
        let value = match scheme {
            Scheme::Light => "light",
            Scheme::Dark => "dark",
        };
        let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": value }] });
        self.send("Emulation.setEmulatedMedia", media).await?;
        Ok(())
    }

    /// Returns the value of a JavaScript expression.
    pub async fn value(&mut self, expression: &str) -> Result<Value> {
        let params = json!({
            "expression": expression, "returnByValue": true, "awaitPromise": true,
        });
        let mut answer = self.send("Runtime.evaluate", params).await?;
        if let Some(details) = answer.get("exceptionDetails") {
            bail!("{expression}: {details}");
        }
        Ok(answer["result"]["value"].take())
    }

    /// Waits until a JavaScript expression is true.
    pub async fn until(&mut self, expression: &str) -> Result<()> {
        let waited = eventually(expression, async || {
            let value = self.value(expression).await?;
            Ok((value == true).then_some(()))
        });
        let waited = waited.await;
        if waited.is_err() {
            let shown = self.text().await.unwrap_or_default();
            return waited.with_context(|| format!("the page shows:\n{shown}"));
        }
        Ok(())
    }

    /// Returns the visible text of the page.
    pub async fn text(&mut self) -> Result<String> {
        let text = self.value("document.body.innerText").await?;
        Ok(text.as_str().unwrap_or_default().to_owned())
    }

    /// Waits until an element of this selector shows this text.
    pub async fn shows(&mut self, selector: &str, text: &str) -> Result<()> {
        self.until(&format!("Boolean({})", found(selector, text)))
            .await
    }

    /// Waits until no element of this selector shows this text.
    pub async fn hides(&mut self, selector: &str, text: &str) -> Result<()> {
        self.until(&format!("!{}", found(selector, text))).await
    }

    /// Clicks with the mouse on the element of this selector that shows this text, once it is
    /// there. The page may move or replace the element between the press and the release; then the
    /// click is lost, and made again.
    pub async fn click(&mut self, selector: &str, text: &str) -> Result<()> {
        self.shows(selector, text).await?;
        // The listener looks for the element anew, before the page handles the click.
        let place = format!(
            "(() => {{ const find = () => {}, node = find(); if (!node) return null; \
             window.clicked = false; \
             const hear = event => {{ if (find()?.contains(event.target)) clicked = true; }}; \
             window.addEventListener('click', hear, {{ capture: true, once: true }}); \
             node.scrollIntoView({{ block: 'center' }}); \
             const box = node.getBoundingClientRect(); \
             return [box.x + box.width / 2, box.y + box.height / 2]; }})()",
            found(selector, text)
        );
        let what = format!("a click on {selector} with {text:?}");
        eventually(&what, async || {
            let place = self.value(&place).await?;
            if place.is_null() {
                return Ok(None);
            }
            for kind in ["mousePressed", "mouseReleased"] {
                let event = json!({
                    "type": kind, "x": place[0], "y": place[1], "button": "left", "clickCount": 1,
                });
                self.send("Input.dispatchMouseEvent", event).await?;
            }
            // Another page, to which the click led, does not know it.
            let is_lost = self.value("window.clicked === false").await?;
            Ok((is_lost != true).then_some(()))
        })
        .await
    }

    /// Presses a key that types no text: `Escape`, `Tab`, `Enter`.
    pub async fn press(&mut self, key: &str) -> Result<()> {
        let code = match key {
            "Escape" => 27,
            "Tab" => 9,
            "Enter" => 13,
            other => bail!("the code of the key {other} is not known here"),
        };
        for kind in ["rawKeyDown", "keyUp"] {
            let event = json!({
                "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code,
            });
            self.send("Input.dispatchKeyEvent", event).await?;
        }
        Ok(())
    }

    /// Types a text into the field of this selector, in place of what is there.
    pub async fn fill(&mut self, selector: &str, text: &str) -> Result<()> {
        let node = format!("document.querySelector({})", json!(selector));
        self.until(&format!("Boolean({node})")).await?;
        let emptied = "new Event('input', { bubbles: true })";
        self.value(&format!(
            "{node}.focus(), {node}.value = '', {node}.dispatchEvent({emptied})"
        ))
        .await?;
        if !text.is_empty() {
            self.send("Input.insertText", json!({ "text": text }))
                .await?;
        }
        Ok(())
    }

    /// Chooses an option of the list of this selector, by its value.
    pub async fn choose(&mut self, selector: &str, value: &str) -> Result<()> {
        let node = format!("document.querySelector({})", json!(selector));
        let option = format!(
            "[...{node}.options].some(one => one.value === {})",
            json!(value)
        );
        self.until(&option).await?;
        let choose = format!(
            "{node}.value = {}, {node}.dispatchEvent(new Event('change', {{ bubbles: true }}))",
            json!(value)
        );
        self.value(&choose).await?;
        Ok(())
    }

    /// Gives a file to the field of this selector.
    pub async fn attach(&mut self, selector: &str, file: &Path) -> Result<()> {
        self.until(&format!(
            "Boolean(document.querySelector({}))",
            json!(selector)
        ))
        .await?;
        let document = self.send("DOM.getDocument", json!({})).await?;
        let query = json!({ "nodeId": document["root"]["nodeId"], "selector": selector });
        let found = self.send("DOM.querySelector", query).await?;
        let files = json!({ "nodeId": found["nodeId"], "files": [file] });
        self.send("DOM.setFileInputFiles", files).await?;
        Ok(())
    }

    /// Checks that the page is not wider than the tab.
    pub async fn fits(&mut self) -> Result<()> {
        let wide = "[...document.querySelectorAll('body *')]\
             .filter(node => node.getBoundingClientRect().right > innerWidth + 1)\
             .slice(0, 5).map(node => node.outerHTML.slice(0, 200))";
        let is_wide = "document.documentElement.scrollWidth > innerWidth";
        let found = self.value(&format!("{is_wide} ? {wide} : null")).await?;
        ensure!(found.is_null(), "the page is too wide: {found:#}");
        Ok(())
    }

    /// Keeps a picture of the whole page, and returns its path: a file below the target folder.
    pub async fn picture(&mut self, name: &str) -> Result<PathBuf> {
        let metrics = self.send("Page.getLayoutMetrics", json!({})).await?;
        let size = &metrics["cssContentSize"];
        let clip = json!({
            "x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1,
        });
        let params = json!({ "format": "png", "captureBeyondViewport": true, "clip": clip });
        let shot = self.send("Page.captureScreenshot", params).await?;
        let bytes = BASE64_STANDARD.decode(shot["data"].as_str().unwrap_or_default())?;
        // <target>/<profile>/deps/<test>
        let test = env::current_exe()?;
        let file = test
            .with_file_name("screenshots")
            .join(format!("{name}.png"));
        fs::create_dir_all(file.parent().unwrap_or(&file))?;
        fs::write(&file, bytes).with_context(|| file.display().to_string())?;
        Ok(file)
    }

    /// Returns what went wrong in the page until now: errors on its console, and requests to
    /// another server than its own.
    pub fn problems(&mut self) -> Vec<String> {
        let (session, origin) = (self.session.clone(), self.origin.clone());
        let events = self.browser.take_events(&session);
        let problem = |event: &Value| {
            let params = &event["params"];
            match event["method"].as_str()? {
                "Runtime.exceptionThrown" | "Runtime.consoleAPICalled" => Some(params.to_string()),
                "Log.entryAdded" if params["entry"]["level"] != "verbose" => {
                    Some(params["entry"].to_string())
                }
                "Network.requestWillBeSent" => {
                    let url = params["request"]["url"].as_str()?;
                    let rest = url.strip_prefix(origin.as_str());
                    let is_own = rest.is_some_and(|rest| rest.starts_with('/'));
                    (!is_own && !url.starts_with("data:")).then(|| format!("a request to {url}"))
                }
                _ => None,
            }
        };
        events.iter().filter_map(problem).collect()
    }
}

fn found(selector: &str, text: &str) -> String {
    format!("({FIND})({}, {})", json!(selector), json!(text))
}
