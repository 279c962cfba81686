//! Topics: publishers and subscribers, over memory that the sender borrows and the receiver reads where it lies.

use iceoryx2::port::notifier::Notifier;
use iceoryx2::port::publisher::Publisher as Port;
use iceoryx2::port::subscriber::Subscriber;
use rtmeter_adapter::{Message, OnMessage, Publisher, Refused};

use crate::{BURST, Received, Variant, notify};

/// The user header is the sequence number.
pub struct Writer {
    pub port: Port<Variant, [u8], u64>,
    /// Of the process that receives; None where it polls.
    pub wakes: Option<Notifier<Variant>>,
}

impl Publisher for Writer {
    /// The payload is written where the receiver reads it.
    fn publish(&self, message: &Message) -> Result<(), Refused> {
        let mut sample = self.port.loan_slice_uninit(message.data.len()).map_err(|_| Refused::Call)?;
        *sample.user_header_mut() = message.sequence;
        sample.write_from_slice(message.data).send().map_err(|_| Refused::Call)?;
        notify(self.wakes.as_ref())
    }
}

/// What a subscriber receives, and who is told.
pub struct Reader {
    pub port: Subscriber<Variant, [u8], u64>,
    pub on_message: OnMessage,
    /// Of a discovery: there while the port is.
    pub _tells: Option<Notifier<Variant>>,
}

impl Received for Reader {
    fn take_all(&self) -> Result<usize, Refused> {
        for taken in 0..BURST {
            let Some(sample) = self.port.receive().map_err(|_| Refused::Call)? else { return Ok(taken) };
            self.on_message.call(*sample.user_header(), sample.payload());
        }
        Ok(BURST)
    }
}
