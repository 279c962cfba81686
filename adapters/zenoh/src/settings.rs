//! The options, and the configurations of sessions that follow from them.

use std::net::TcpListener;

use rtmeter_adapter::{Choice, Measurement, Role, Run, SetupError, Sink, Text};
use zenoh::query::ConsolidationMode;
use zenoh::{Config, Session, Wait};

const TRANSPORT: Choice = Choice {
    key: "transport",
    words: &["tcp", "unixsock-stream"],
    about: "what carries round trips; a cycle's messages stay in the session",
};
const VIA: Choice =
    Choice { key: "via", words: &["peer", "router"], about: "peer to peer, or two clients of a router" };
const EXPRESS: Choice = Choice {
    key: "express",
    words: &["yes", "no"],
    about: "whether a message is sent at once, or may wait for others to share its batch",
};
const LOW_LATENCY: Choice = Choice {
    key: "lowlatency",
    words: &["no", "yes"],
    about: "zenoh's low-latency transport: no priorities, and no message larger than a batch, 65,535 bytes; \
            not over a router that runs already",
};
const CONSOLIDATION: Choice = Choice {
    key: "consolidation",
    words: &["auto", "none"],
    about: "of a request's replies: auto, the default, holds one back until the query has come to its end",
};
const CHOICES: [&Choice; 5] = [&TRANSPORT, &VIA, &EXPRESS, &LOW_LATENCY, &CONSOLIDATION];
const ROUTER: Text = Text {
    key: "router",
    otherwise: "",
    about: "with via=router: where a zenohd listens, tcp/HOST:7447; none: one in the server's process. \
            Discoveries and chains have no server",
};
const ADDRESS: Text = Text {
    key: "address",
    otherwise: "127.0.0.1",
    about: "where the server listens by tcp, 127.0.0.1 by default; the processes of a discovery or chain also \
            look there",
};
const ENDPOINT: Text = Text {
    key: "endpoint",
    otherwise: "",
    about: "of the client, or who is beside it: where to connect to, as the server says",
};
const TEXTS: [&Text; 3] = [&ROUTER, &ADDRESS, &ENDPOINT];
/// What a batch holds beside a message, generously.
const BATCH_BYTES: u32 = 65_000;

pub fn describe_static(sink: &mut Sink) {
    CHOICES.iter().for_each(|choice| choice.describe(sink));
    TEXTS.iter().for_each(|text| text.describe(sink));
}

/// What the run asks for.
pub struct Settings {
    pub express: bool,
    pub transport: &'static str,
    pub consolidation: ConsolidationMode,
    requests: bool,
    via_router: bool,
    low_latency: bool,
    /// A router that runs already, or empty.
    router: String,
    address: String,
    pub endpoint: String,
    /// By multicast: where participants look for each other; or empty.
    scouted: String,
}

impl Settings {
    /// A round trip's. A cycle has one session, in which nothing is sent, and none of the options.
    pub fn of(run: &Run) -> Result<Self, SetupError> {
        let mut settings = Self {
            express: true,
            transport: "",
            consolidation: ConsolidationMode::Auto,
            requests: false,
            via_router: false,
            low_latency: false,
            router: String::new(),
            address: String::new(),
            endpoint: String::new(),
            scouted: String::new(),
        };
        if matches!(run.measurement(), Measurement::Chain | Measurement::Discovery) {
            return settings.of_participant(run);
        }
        if run.role() == Role::Single {
            return Ok(settings);
        }
        settings.express = EXPRESS.of(run)? == "yes";
        settings.via_router = VIA.of(run)? == "router";
        settings.requests = run.measurement() == Measurement::Request;
        if settings.requests && CONSOLIDATION.of(run)? == "none" {
            settings.consolidation = ConsolidationMode::None;
        }
        if settings.via_router {
            settings.router = ROUTER.of(run);
        }
        if settings.router.is_empty() {
            settings.transport = TRANSPORT.of(run)?;
            settings.low_latency = LOW_LATENCY.of(run)? == "yes";
        } else {
            settings.transport = transport_of(&settings.router)?;
        }
        let listens = run.role() == Role::Server && settings.router.is_empty();
        if listens && settings.transport != "unixsock-stream" {
            settings.address = ADDRESS.of(run);
        }
        if run.role() != Role::Server {
            settings.endpoint = ENDPOINT.of(run);
        }
        settings.check(run)?;
        Ok(settings)
    }

    /// Sessions of zenoh's default, peers that scout by multicast, but in a group of this run's own; or clients of
    /// a router.
    fn of_participant(mut self, run: &Run) -> Result<Self, SetupError> {
        self.express = EXPRESS.of(run)? == "yes";
        self.transport = TRANSPORT.words[0];
        self.via_router = VIA.of(run)? == "router";
        if self.via_router {
            self.router = ROUTER.of(run);
            if !self.router.contains('/') {
                let remedy = "start a zenohd and give where it listens: router=tcp/HOST:7447";
                let message =
                    "neither a discovery nor a chain has a server, in whose process a router could be";
                return Err(SetupError::new("option router", self.router, message, remedy));
            }
            self.transport = transport_of(&self.router)?;
            self.endpoint = self.router.clone();
            return Ok(self);
        }
        self.address = ADDRESS.of(run);
        self.scouted = format!("224.0.0.224:{}", port_of(&run.session()));
        Ok(self)
    }

    fn check(&self, run: &Run) -> Result<(), SetupError> {
        if self.low_latency && run.payload_bytes() > BATCH_BYTES {
            let message = "zenoh's low-latency transport splits no message that is larger than its batch";
            let remedy = format!("give at most {BATCH_BYTES}, or option lowlatency=no");
            return Err(SetupError::new("payload_bytes", run.payload_bytes().to_string(), message, remedy));
        }
        if run.role() != Role::Server && !self.endpoint.contains('/') {
            let remedy = "start the server first and give the endpoint that it prints: tcp/HOST:PORT";
            return Err(SetupError::new(
                "option endpoint",
                &self.endpoint,
                "is no endpoint of zenoh's",
                remedy,
            ));
        }
        Ok(())
    }

    /// Opens what the process needs: its session, and before it the router, where this process is to have it.
    pub fn open(&mut self, run: &Run) -> Result<(Session, Option<Session>), SetupError> {
        if !self.scouted.is_empty() {
            let listen = format!("{}/{}:0", self.transport, self.address);
            return Ok((self.session("peer", &[&listen], &[])?, None));
        }
        match run.role() {
            Role::Single if self.via_router => Ok((self.session("client", &[], &[&self.endpoint])?, None)),
            Role::Single => Ok((self.session("peer", &[], &[])?, None)),
            Role::Client | Role::Beside if self.via_router => {
                Ok((self.session("client", &[], &[&self.endpoint])?, None))
            }
            Role::Client | Role::Beside => Ok((self.session("peer", &[], &[&self.endpoint])?, None)),
            Role::Server if !self.via_router => Ok((self.listening("peer", run)?, None)),
            Role::Server if !self.router.is_empty() => {
                self.endpoint = self.router.clone();
                Ok((self.session("client", &[], &[&self.endpoint])?, None))
            }
            Role::Server => {
                let router = self.listening("router", run)?;
                Ok((self.session("client", &[], &[&self.endpoint])?, Some(router)))
            }
        }
    }

    /// A session that listens, where it says in `endpoint`. A port that was free may be taken a moment later.
    fn listening(&mut self, mode: &str, run: &Run) -> Result<Session, SetupError> {
        const TRIES: usize = 5;
        for _ in 1..TRIES {
            self.endpoint = self.free_endpoint(run)?;
            if let Ok(session) = self.session(mode, &[&self.endpoint], &[]) {
                return Ok(session);
            }
        }
        self.endpoint = self.free_endpoint(run)?;
        self.session(mode, &[&self.endpoint], &[])
    }

    fn free_endpoint(&self, run: &Run) -> Result<String, SetupError> {
        if self.transport == "unixsock-stream" {
            let file = std::env::temp_dir().join(format!("rtmeter-{}.zenoh", run.session()));
            return Ok(format!("{}/{}", self.transport, file.display()));
        }
        let free = TcpListener::bind((self.address.as_str(), 0)).and_then(|socket| socket.local_addr());
        let free = free.map_err(|error| {
            let remedy = "give an address of this machine";
            SetupError::new("option address", &self.address, error.to_string(), remedy)
        })?;
        Ok(format!("{}/{free}", self.transport))
    }

    /// But in a discovery or chain nobody is looked for: ends meet at the endpoints that they are given, so that
    /// no two runs ever do.
    fn session(&self, mode: &str, listen: &[&str], connect: &[&str]) -> Result<Session, SetupError> {
        let list = |endpoints: &[&str]| format!("{endpoints:?}");
        let mut config = Config::default();
        let scouts = !self.scouted.is_empty();
        let scouting = [
            ("scouting/multicast/address", format!("{:?}", self.scouted)),
            ("scouting/multicast/interface", format!("{:?}", self.address)),
        ];
        let all = [
            ("mode", format!("{mode:?}")),
            ("listen/endpoints", list(listen)),
            ("connect/endpoints", list(connect)),
            ("scouting/multicast/enabled", scouts.to_string()),
            ("scouting/gossip/enabled", scouts.to_string()),
            ("transport/unicast/lowlatency", self.low_latency.to_string()),
            ("transport/unicast/qos/enabled", (!self.low_latency).to_string()),
        ];
        for (key, value) in all.into_iter().chain(scouting.into_iter().filter(|_| scouts)) {
            config.insert_json5(key, &value).map_err(|error| failed(key, &value, &error))?;
        }
        let place = connect.first().or(listen.first()).copied().unwrap_or_default();
        zenoh::open(config).wait().map_err(|error| failed("session", place, &error))
    }

    /// Where the file of a Unix socket of ours lies, which zenoh leaves with its lock.
    pub fn socket_file(&self) -> Option<&str> {
        self.router.is_empty().then(|| self.endpoint.strip_prefix("unixsock-stream/")).flatten()
    }

    /// Where others are looked for; None: the session is alone.
    pub fn place(&self, role: Role) -> Option<String> {
        match (self.scouted.is_empty(), role == Role::Single && self.endpoint.is_empty()) {
            (false, _) => Some(format!("scouting at {} on {}", self.scouted, self.address)),
            (true, true) => None,
            (true, false) => Some(format!("no scouting, at {} alone", self.endpoint)),
        }
    }

    pub fn describe(&self, role: Role, sink: &mut Sink) {
        if self.place(role).is_none() {
            return;
        }
        sink.put("transport", self.transport);
        let yes_or_no = |flag| if flag { "yes" } else { "no" };
        sink.put("qos.express", yes_or_no(self.express)).put("lowlatency", yes_or_no(self.low_latency));
        if self.requests {
            let none = self.consolidation == ConsolidationMode::None;
            sink.put("qos.consolidation", if none { "none" } else { "auto" });
        }
        sink.put("via", if self.via_router { "router" } else { "peer" });
        if role == Role::Server {
            sink.put("endpoint", &self.endpoint).put("chosen", "endpoint");
        }
        if self.via_router {
            sink.put("router", if self.router.is_empty() { "in the server's process" } else { &self.router });
        }
    }
}

/// What carries messages to a router that runs already: where it listens says so. Neither that nor the
/// low-latency transport, which zenoh takes only if both ends have it, is the run's to choose: options transport
/// and lowlatency are refused.
fn transport_of(router: &str) -> Result<&'static str, SetupError> {
    let scheme = router.split('/').next().unwrap_or_default();
    TRANSPORT.words.iter().find(|word| **word == scheme).copied().ok_or_else(|| {
        let message = format!("the adapter's sessions speak {}", TRANSPORT.words.join(" and "));
        SetupError::new("option router", router, message, "give where a zenohd listens: router=tcp/HOST:7447")
    })
}

/// A port that follows from the session, below those that the kernel gives out.
fn port_of(session: &str) -> u32 {
    let fnv = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(16_777_619);
    10_000 + session.bytes().fold(2_166_136_261, fnv) % 20_000
}

/// What zenoh says of it.
pub fn failed(field: &str, value: &str, error: &dyn std::fmt::Display) -> SetupError {
    let remedy = "see its messages in the cell's probe.stderr; RUST_LOG=zenoh=debug has more of them";
    SetupError::new(field, value, format!("zenoh: {error}"), remedy)
}
