//! All integration tests in one program: it is linked once, and all tests that can share an API
//! server of each kind do.
//!
//! Tests run concurrently on the shared servers, so each uses names of its own: a namespace from
//! [`TestServer::namespace`], a kind in a group that no other test uses. Every host of a test has
//! `--namespace`; without it, it would work on the objects of other tests. A test that kills its
//! server, needs a cluster without a kind or reads all namespaces says `own`.
//!
//! [`TestServer::namespace`]: vmhost_tests::server::TestServer::namespace

mod access;
mod admin;
mod admission_server;
mod apiserver_command;
mod apply_cases;
mod apply_random;
mod bad_input;
mod bad_requests;
mod canary;
mod cases_command;
mod cases_reviews;
mod chart;
mod chart_rights;
mod chart_uninstall;
mod circles;
mod clusters;
mod compiler;
mod conformance;
mod connection;
mod converge;
mod conversion_server;
mod dev;
mod embedded_kinds;
mod envtest;
mod every_kind;
mod examples_all;
mod examples_app;
mod examples_cloud_vm;
mod examples_database;
mod examples_defaults;
mod examples_endpoints_logger;
mod examples_fleet;
mod examples_foo;
mod examples_image_policy;
mod examples_pod_counter;
mod examples_vm;
mod examples_vm_v2;
mod failed_reload;
mod finalizers_command;
mod grants;
mod guest_state;
mod harness;
mod hostile_guests;
mod image;
mod in_cluster;
mod isolation;
mod javascript;
mod kubectl;
mod languages;
mod leader;
mod level_based;
mod lifecycle;
mod metrics_access;
mod oci;
mod one_generation;
mod operations;
mod orders;
mod page;
mod pages;
mod plugin_deputy;
mod plugin_objects;
mod plugin_revoked;
mod plugin_rollouts;
mod preview;
mod preview_overlay;
mod preview_safety;
mod protobuf_answers;
mod python;
mod rbac;
mod reads;
mod record;
mod refused_bodies;
mod registry;
mod release;
mod replay_languages;
mod rights;
mod rollback;
mod rule_cases;
mod same_answers;
mod same_text;
mod sdks;
mod set_up;
mod settle_effects;
mod settle_refusals;
mod shadow;
mod single_flight;
mod start_up;
mod tables;
mod tidy;
mod traces;
mod traces_reviews;
mod triggers;
mod types;
mod watches;
mod watching;
mod webhooks;
mod why;
mod without_dev;
