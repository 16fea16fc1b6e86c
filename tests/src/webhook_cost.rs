//! What a webhook's answers cost: reviews go straight to its address, at a steady rate, and the
//! kernel says what its process took meanwhile.
//!
//! Must not know which program answers.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use bytes::Bytes;

use crate::asker::Asker;
use crate::image_policy::{self, FOREIGN};
use crate::load::{Figures, Load};
use crate::process;
use crate::wait::eventually;

/// Requests a second.
pub const RATE: u32 = 300;

/// How long a webhook is asked before it is measured.
const WARM_UP: Duration = Duration::from_secs(3);
/// Different reviews, which are sent again and again.
const REVIEWS: usize = 512;

/// A webhook with the rule of `image-policy`.
pub struct Measured {
    /// What it is called in a table.
    pub name: &'static str,
    process: u32,
    asker: Arc<Asker>,
    reviews: Arc<[Bytes]>,
    figures: Figures,
    /// The seconds of CPU that the reviews in `figures` took.
    cpu: f64,
}

impl Measured {
    /// A webhook of this process.
    pub fn new(name: &'static str, process: u32, asker: Asker) -> Measured {
        let review = |number: usize| {
            let image = image_policy::image(number);
            Bytes::from(image_policy::review(number, &image).to_string())
        };
        Measured {
            name,
            process,
            asker: Arc::new(asker),
            reviews: (0..REVIEWS).map(review).collect(),
            figures: Figures::default(),
            cpu: 0.0,
        }
    }

    /// Waits until it answers, checks that it decides by the rule, and warms it up.
    pub async fn prepare(&self) -> Result<()> {
        eventually(&format!("{} answers", self.name), async || {
            self.asker.expect_allowed(self.reviews[0].clone()).await?;
            Ok(Some(()))
        })
        .await?;
        let foreign = image_policy::review(0, FOREIGN).to_string();
        let refused = self.asker.ask(foreign.into()).await?;
        let name = self.name;
        ensure!(refused["allowed"] == false, "{name} allows all: {refused}");
        self.load(WARM_UP).await.map(drop)
    }

    /// Sends reviews for this time, all of which are to be allowed.
    pub async fn load(&self, time: Duration) -> Result<Figures> {
        let (asker, reviews) = (self.asker.clone(), self.reviews.clone());
        let load = Load::start(RATE, move |number| {
            let review = reviews[number % reviews.len()].clone();
            let asker = asker.clone();
            async move { asker.expect_allowed(review).await }
        });
        tokio::time::sleep(time).await;
        load.stop().await
    }

    /// Adds the figures of reviews for this time. The process must have nothing else to do.
    pub async fn measure(&mut self, time: Duration) -> Result<()> {
        let before = process::quiet(self.process).await?;
        let figures = self.load(time).await?;
        self.cpu += process::quiet(self.process).await? - before;
        self.figures.join(figures);
        Ok(())
    }

    /// Returns the figures of all reviews that were measured.
    pub fn figures(&self) -> &Figures {
        &self.figures
    }

    /// Returns the microseconds of CPU that one review took.
    pub fn cpu(&self) -> f64 {
        self.cpu * 1e6 / self.figures.sent() as f64
    }
}
