//! Dust DDS's UDP transport, held to one interface.
//!
//! Dust DDS listens on the interface that it is given, and multicasts on every one that the machine has.
//! Here multicasts too go out on the one interface only; all else is Dust DDS's own code.

use std::net::{IpAddr, Ipv4Addr, SocketAddrV4, UdpSocket};

use dust_dds::rtps_udp_transport::udp_transport::RtpsUdpTransportParticipantFactory;
use dust_dds::transport::interface::{
    RtpsTransportParticipant, TransportDataReceiver, TransportParticipantFactory, WriteMessage,
};
use dust_dds::transport::types::{LOCATOR_KIND_UDP_V4, Locator};
use network_interface::{NetworkInterface, NetworkInterfaceConfig};
use rtmeter_adapter::SetupError;

/// Of a message in one datagram. Dust DDS's own default is 1,344, and a socket's buffer, as large as the
/// system makes it, then holds less than 128 KiB of payload.
const FRAGMENT_BYTES: usize = 65_000;
/// What Cyclone DDS asks for too. The system grants no more than net.core.rmem_max.
const RECEIVE_BUFFER_BYTES: usize = 1 << 20;

/// Dust DDS's transport as it is, or on one interface.
pub struct Transport {
    dust: RtpsUdpTransportParticipantFactory,
    multicasts: Option<UdpSocket>,
}

impl Transport {
    /// interface: name and IPv4 address, or None for Dust DDS's own choice.
    pub fn new(interface: Option<(String, String)>) -> Result<Self, SetupError> {
        let mut dust = RtpsUdpTransportParticipantFactory::default();
        let Some((name, address)) = interface else { return Ok(Self { dust, multicasts: None }) };
        let multicasts = socket_on(&address).map_err(|error| {
            let remedy = "choose another interface, or option transport=vendor";
            SetupError::new("option interface", &name, format!("no multicast socket there: {error}"), remedy)
        })?;
        dust.set_interface_name(Some(name));
        dust.set_udp_receive_buffer_size(Some(RECEIVE_BUFFER_BYTES));
        dust.set_fragment_size(FRAGMENT_BYTES).expect("Dust DDS allows 8 to 65,000 bytes");
        Ok(Self { dust, multicasts: Some(multicasts) })
    }
}

impl Transport {
    /// What tells this host from others in the names of participants.
    pub fn host_id(&self) -> [u8; 4] {
        let interfaces = NetworkInterface::show().unwrap_or_default();
        let addresses = interfaces.iter().flat_map(|interface| &interface.addr);
        let mut own = addresses.filter_map(|address| match address.ip() {
            IpAddr::V4(address) if !address.is_loopback() => Some(address.octets()),
            _ => None,
        });
        own.next().unwrap_or_default()
    }
}

fn socket_on(address: &str) -> std::io::Result<UdpSocket> {
    let address: Ipv4Addr = address.parse().map_err(std::io::Error::other)?;
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::DGRAM, None)?;
    socket.set_multicast_if_v4(&address)?;
    Ok(socket.into())
}

impl TransportParticipantFactory for Transport {
    fn create_participant(&self, domain: i32, receiver: TransportDataReceiver) -> RtpsTransportParticipant {
        let mut participant = self.dust.create_participant(domain, receiver);
        if let Some(multicasts) = &self.multicasts {
            let multicasts = multicasts.try_clone().expect("a socket can be duplicated");
            participant.message_writer =
                Box::new(OnOneInterface { dust: participant.message_writer, multicasts });
        }
        participant
    }
}

struct OnOneInterface {
    dust: Box<dyn WriteMessage + Send + Sync>,
    multicasts: UdpSocket,
}

impl WriteMessage for OnOneInterface {
    fn write_buffer_mut(&mut self) -> &mut [u8] {
        self.dust.write_buffer_mut()
    }

    // Measured path. That a datagram could not be sent is not told: Dust DDS has no way to hear it.
    fn write_message(&mut self, bytes: usize, locators: &[Locator]) {
        for locator in locators {
            match multicast_address(locator) {
                None => self.dust.write_message(bytes, std::slice::from_ref(locator)),
                Some(group) => {
                    let _ = self.multicasts.send_to(&self.dust.write_buffer_mut()[..bytes], group);
                }
            }
        }
    }
}

fn multicast_address(locator: &Locator) -> Option<SocketAddrV4> {
    let [.., a, b, c, d] = locator.address();
    let address = Ipv4Addr::new(a, b, c, d);
    let is_multicast = locator.kind() == LOCATOR_KIND_UDP_V4 && address.is_multicast();
    is_multicast.then(|| SocketAddrV4::new(address, locator.port() as u16))
}
