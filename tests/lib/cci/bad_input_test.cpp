// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "world.hpp"

#include <fstream>

namespace cci_test {
namespace {

TEST(BadInput, CallsRefuseWhatTheyCannotUse) {
  std::uint32_t caps = 0;
  cci_device_t* const* devices = nullptr;
  EXPECT_EQ(cci_finalize(), CCI_ERROR);
  EXPECT_EQ(cci_get_devices(&devices), CCI_ENODEV);
  EXPECT_EQ(cci_init(1, 0, &caps), CCI_EINVAL);
  EXPECT_EQ(cci_init(CCI_ABI_VERSION, 0, nullptr), CCI_EINVAL);
  ASSERT_EQ(cci_init(CCI_ABI_VERSION, 0, &caps), CCI_SUCCESS);
  EXPECT_EQ(cci_init(CCI_ABI_VERSION, 1, &caps), CCI_ERR_NOT_IMPLEMENTED);
  EXPECT_EQ(cci_get_devices(nullptr), CCI_EINVAL);
  ASSERT_EQ(cci_get_devices(&devices), CCI_SUCCESS);
  ASSERT_NE(devices[0], nullptr);
  Pair pair;
  EXPECT_EQ(cci_create_endpoint(nullptr, 0, nullptr, nullptr), CCI_EINVAL);
  EXPECT_EQ(cci_create_endpoint_at(nullptr, "1", 0, &pair.client, nullptr), CCI_EINVAL);
  for (const char* service : {"", "0", "65536", "x", "-1", "12x"})
    EXPECT_EQ(cci_create_endpoint_at(devices[0], service, 0, &pair.client, nullptr), CCI_EINVAL) << service;
  ASSERT_NO_FATAL_FAILURE(open(&pair, CCI_CONN_ATTR_RO));
  const std::string uri = uri_of(pair.server);
  EXPECT_EQ(
      cci_create_endpoint_at(devices[0], uri.substr(uri.rfind(':') + 1).c_str(), 0, &pair.client, nullptr),
      CCI_EADDRNOTAVAIL);
  for (const char* text : {"", "nic", "nic://", "nic://a", "nic://a:", "nic://a:0", "nic://a:65536",
                           "nic://:1", "tcp://127.0.0.1:1", "sm://a", "nic://a:1x"})
    EXPECT_EQ(cci_connect(pair.client, text, nullptr, 0, CCI_CONN_ATTR_RO, nullptr, 0, nullptr), CCI_EINVAL)
        << text;
  char data[CCI_CONN_REQ_LEN + 1] = {};
  EXPECT_EQ(cci_connect(pair.client, uri.c_str(), data, sizeof data, CCI_CONN_ATTR_RO, nullptr, 0, nullptr),
            CCI_EINVAL);
  EXPECT_EQ(cci_connect(pair.client, uri.c_str(), nullptr, 1, CCI_CONN_ATTR_RO, nullptr, 0, nullptr),
            CCI_EINVAL);
  EXPECT_EQ(cci_connect(pair.client, uri.c_str(), nullptr, 0, static_cast<cci_conn_attribute_t>(5), nullptr,
                        0, nullptr),
            CCI_EINVAL);
  // Options of connections are not the endpoint's, nor the other way round.
  for (const cci_opt_name_t name : {CCI_OPT_CONN_SEND_TIMEOUT, CCI_OPT_CONN_KEEPALIVE_TIMEOUT}) {
    EXPECT_EQ(cci_get_opt(pair.client, name, data), CCI_EINVAL);
    EXPECT_EQ(cci_set_opt(pair.client, name, data), CCI_EINVAL);
  }
  for (const cci_opt_name_t name :
       {CCI_OPT_ENDPT_SEND_TIMEOUT, CCI_OPT_ENDPT_RECV_BUF_COUNT, CCI_OPT_ENDPT_URI}) {
    EXPECT_EQ(cci_get_opt(pair.to_server, name, data), CCI_EINVAL);
    EXPECT_EQ(cci_set_opt(pair.to_server, name, data), CCI_EINVAL);
  }
  cci_event_t* event = nullptr;
  EXPECT_EQ(cci_get_event(nullptr, &event), CCI_EINVAL);
  EXPECT_EQ(cci_get_event(pair.client, nullptr), CCI_EINVAL);
  EXPECT_EQ(cci_return_event(nullptr), CCI_EINVAL);
  EXPECT_EQ(cci_accept(nullptr, nullptr), CCI_EINVAL);
  EXPECT_EQ(cci_reject(nullptr), CCI_EINVAL);
  EXPECT_EQ(cci_disconnect(nullptr), CCI_EINVAL);
  EXPECT_EQ(cci_arm_os_handle(pair.client, 0), CCI_EINVAL) << "it has none";
  EXPECT_EQ(cci_send(nullptr, "a", 1, nullptr, 0), CCI_EINVAL);
  EXPECT_EQ(cci_send(pair.to_server, nullptr, 1, nullptr, 0), CCI_EINVAL);
  EXPECT_EQ(cci_sendv(pair.to_server, nullptr, 1, nullptr, 0), CCI_EINVAL);
  cci_rma_handle_t* handle = nullptr;
  EXPECT_EQ(cci_rma_register(pair.client, nullptr, 1, 0, &handle), CCI_EINVAL);
  EXPECT_EQ(cci_rma_register(pair.client, data, 0, 0, &handle), CCI_EINVAL);
  EXPECT_EQ(cci_rma_register(pair.client, data, UINT64_MAX, 0, &handle), CCI_EINVAL);
  EXPECT_EQ(cci_rma_register(pair.client, data, 1, 1 << 7, &handle), CCI_EINVAL);
  ASSERT_EQ(cci_rma_register(pair.client, data, 100, 0, &handle), CCI_SUCCESS);
  const auto rma = [&](std::uint64_t offset, std::uint64_t bytes, int flags) {
    return cci_rma(pair.to_server, nullptr, 0, handle, offset, handle, 0, bytes, nullptr, flags);
  };
  EXPECT_EQ(rma(0, 1, 0), CCI_EINVAL);
  EXPECT_EQ(rma(0, 1, CCI_FLAG_READ | CCI_FLAG_WRITE), CCI_EINVAL);
  EXPECT_EQ(rma(0, 0, CCI_FLAG_READ), CCI_EINVAL);
  EXPECT_EQ(rma(0, 101, CCI_FLAG_READ), CCI_EINVAL);
  EXPECT_EQ(rma(101, 1, CCI_FLAG_READ), CCI_EINVAL);
  EXPECT_EQ(rma(UINT64_MAX, 2, CCI_FLAG_READ), CCI_EINVAL);
  std::uint32_t value = 0;
  EXPECT_EQ(cci_set_opt(pair.client, CCI_OPT_ENDPT_RECV_BUF_COUNT, &value), CCI_ERANGE);
  EXPECT_EQ(cci_set_opt(pair.client, CCI_OPT_ENDPT_URI, &value), CCI_EINVAL);
  EXPECT_EQ(cci_set_opt(pair.client, static_cast<cci_opt_name_t>(8), &value), CCI_EINVAL);
  EXPECT_EQ(cci_get_opt(pair.client, static_cast<cci_opt_name_t>(8), &value), CCI_EINVAL);
  EXPECT_EQ(cci_get_opt(nullptr, CCI_OPT_ENDPT_SEND_TIMEOUT, &value), CCI_EINVAL);
  EXPECT_STREQ(cci_strerror(nullptr, CCI_ECONNREFUSED), "CCI_ECONNREFUSED");
  EXPECT_STREQ(cci_strerror(nullptr, static_cast<cci_status_t>(9999)), "unknown error");
  EXPECT_EQ(cci_destroy_endpoint(nullptr), CCI_EINVAL);
  EXPECT_EQ(cci_finalize(), CCI_SUCCESS);
}

// What cci_init says of a configuration, and what it writes on stderr.
std::pair<int, std::string> read_configuration(const std::string& text) {
  const std::string file = testing::TempDir() + "cci_bad_input." + std::to_string(::getpid()) + ".ini";
  std::ofstream(file) << text;
  ::setenv("CCI_CONFIG", file.c_str(), 1);
  testing::internal::CaptureStderr();
  std::uint32_t caps = 0;
  const int status = cci_init(CCI_ABI_VERSION, 0, &caps);
  std::string said = testing::internal::GetCapturedStderr();
  if (status == CCI_SUCCESS) cci_finalize();
  ::unlink(file.c_str());
  ::unsetenv("CCI_CONFIG");
  if (const auto at = said.find(file); at != std::string::npos) said.replace(at, file.size(), "FILE");
  return {status, said};
}

TEST(BadInput, ConfigurationsAreRefusedWithFileLineKeyAndWhatIsAccepted) {
  using testing::internal::CaptureStderr;
  const std::pair<const char*, const char*> cases[] = {
      {"[a]\ntransport = nic\nmtu = 17\n", "cci: FILE:3: mtu = 17: bytes from 184 to 65508 are accepted\n"},
      {"[a]\ntransport = sm\nmss = 100\n",
       "cci: FILE:3: mss = 100: a power of two from 64 to 4096 is accepted\n"},
      {"[a]\ntransport = sm\nip = 127.0.0.1\n", "cci: FILE:3: ip: no key of the transport sm"},
      {"# c\n[a]\ntransport = tcp\nip = x\n", "cci: FILE:4: ip = x: an IPv4 address"},
      {"[a]\npriority = 3\n", "cci: FILE:1: [a]: the key transport is missing"},
      {"[a]\ntransport = tcp\npriority = 101\n", "cci: FILE:3: priority = 101: a number from 0 to 100"},
      {"x = y\n", "cci: FILE:1: x = y: a line before the first [name]"},
      {"[a\n", "cci: FILE:1: [a: a section is [name]"},
      {"[a]\ntransport\n", "cci: FILE:2: transport: a line is key = value"},
      {"[a]\ntransport = nic\ninterface = nosuch0\n",
       "cci: FILE:3: interface = nosuch0: an interface of this host"},
      {"[a]\ntransport = nic\nallow = x\n", "cci: FILE:3: allow = x: user and any are accepted"},
  };
  for (const auto& [text, expected] : cases) {
    const auto [status, said] = read_configuration(text);
    EXPECT_EQ(status, CCI_ERROR) << text;
    EXPECT_EQ(said.substr(0, std::strlen(expected)), expected);
  }
  EXPECT_EQ(read_configuration("[a]\ntransport = verbs\n").first, CCI_ERR_NOT_FOUND);
  EXPECT_EQ(read_configuration("").first, CCI_ERR_NOT_FOUND);
  EXPECT_EQ(read_configuration("[a]\ntransport = gni\ndefault\n").first, CCI_SUCCESS);
}

TEST(Configuration, DevicesAreTheFilesInTheirOrder) {
  const std::string file = testing::TempDir() + "cci_order." + std::to_string(::getpid()) + ".ini";
  std::ofstream(file) << "[low]\ntransport=sock\nip=127.0.0.1\nmtu=9000\npriority=1\n"
                         "[sm0]\ntransport = sm # shared\nmss = 1024\npriority = 99\n"
                         "[t]\ntransport = tcp\nip = 127.0.0.1\nmtu = 9000\ndefault = 1\n";
  ::setenv("CCI_CONFIG", file.c_str(), 1);
  std::uint32_t caps = 0;
  ASSERT_EQ(cci_init(CCI_ABI_VERSION, 0, &caps), CCI_SUCCESS);
  cci_device_t* const* devices = nullptr;
  ASSERT_EQ(cci_get_devices(&devices), CCI_SUCCESS);
  ASSERT_NE(devices[0], nullptr);
  EXPECT_STREQ(devices[0]->name, "t");
  EXPECT_EQ(devices[0]->max_send_size, 8992u);
  EXPECT_STREQ(devices[0]->conf_argv[0], "transport=tcp");
  EXPECT_STREQ(devices[1]->name, "sm0");
  EXPECT_EQ(devices[1]->max_send_size, 1024u);
  EXPECT_STREQ(devices[2]->name, "low");
  EXPECT_EQ(devices[2]->max_send_size, 8944u);
  EXPECT_EQ(devices[3], nullptr);
  for (int i = 0; i < 3; ++i) {
    Pair pair;
    ASSERT_NO_FATAL_FAILURE(open(&pair, CCI_CONN_ATTR_RU, nullptr, nullptr, devices[i]));
    EXPECT_EQ(uri_of(pair.server).substr(0, 2), std::string(devices[i]->transport).substr(0, 2));
  }
  EXPECT_EQ(cci_finalize(), CCI_SUCCESS);
  ::unlink(file.c_str());
  ::unsetenv("CCI_CONFIG");
}

}  // namespace
}  // namespace cci_test
