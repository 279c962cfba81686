// main() of every probe whose adapter is in Rust: rtmeter_adapter::export! makes the table.
#include "rtmeter/adapter.h"

extern "C" const rtm_adapter rtm_rust_adapter;

int main(int argc, char** argv) { return rtm_probe_main(argc, argv, &rtm_rust_adapter); }
