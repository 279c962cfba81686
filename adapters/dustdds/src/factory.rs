//! Dust DDS's factory of participants: one a process, which tells their names apart.

use std::sync::OnceLock;
use std::time::Duration;

use dust_dds::configuration::DustDdsConfigurationBuilder;
use dust_dds::dds_async::domain_participant_factory::DomainParticipantFactoryAsync;
use dust_dds::std_runtime::StdRuntime;
use rtmeter_adapter::SetupError;

use crate::failed;
use crate::shared::Shared;
use crate::transport::Transport;

pub type Factory = DomainParticipantFactoryAsync<Transport>;

/// It has no end: once it is made, its threads are the process's.
static FACTORY: OnceLock<Factory> = OnceLock::new();

/// The factory, made at the first call with what that run asks for.
pub fn factory_of_process(shared: &Shared) -> Result<&'static Factory, SetupError> {
    if let Some(known) = FACTORY.get() {
        return Ok(known);
    }
    let transport = Transport::new(shared.interface())?;
    // Each implementation describes types its own way: among several they are told apart by name alone. A newcomer
    // hears of a participant here at its next announcement, and no sooner.
    let configuration = DustDdsConfigurationBuilder::new()
        .enable_type_information(shared.lease_s().is_none())
        .participant_announcement_interval(Duration::from_secs(1))
        .build()
        .map_err(failed("configuration"))?;
    let host = transport.host_id();
    let process = std::process::id().to_ne_bytes();
    Ok(FACTORY.get_or_init(|| Factory::new(StdRuntime::new(), process, host, transport, configuration)))
}
