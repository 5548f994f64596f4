// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/wire/seal.hpp"

#include <array>
#include <cstring>
#include <type_traits>

#if ORRERY_HAS_CRYPTO
#include <dlfcn.h>
#include <openssl/evp.h>
#endif

namespace orrery::wire {

namespace {

// DO NOT CHANGE THE NUMBERS of a version.
constexpr std::uint32_t kMagic = 0x5852524f;  // "ORRX" in memory
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kNonceBytes = 12;

[[maybe_unused]] void put(std::byte* out, std::uint64_t value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) out[i] = static_cast<std::byte>(value >> (8 * i));
}

std::uint64_t get(const std::byte* in, std::size_t bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) value |= static_cast<std::uint64_t>(in[i]) << (8 * i);
  return value;
}

[[maybe_unused]] std::array<unsigned char, kNonceBytes> nonce_of(std::uint64_t counter) {
  std::array<std::byte, kNonceBytes> bytes{};
  put(bytes.data(), counter, 8);
  std::array<unsigned char, kNonceBytes> nonce{};
  std::memcpy(nonce.data(), bytes.data(), nonce.size());
  return nonce;
}

}  // namespace

std::optional<SealHead> read_seal_head(std::span<const std::byte> bytes) {
  if (bytes.size() < kSealBytes || get(bytes.data(), 4) != kMagic || get(bytes.data() + 4, 4) != kVersion)
    return std::nullopt;
  return SealHead{.source = static_cast<std::uint32_t>(get(bytes.data() + 8, 4)),
                  .target = static_cast<std::uint32_t>(get(bytes.data() + 12, 4)),
                  .counter = get(bytes.data() + 16, 8)};
}

AuthKey seal_key(const AuthKey& secret, const AuthScope& scope) {
  return derive_key(derive_key(secret, scope), {.job = kMagic, .from = 0, .to = 0, .domain = 0});
}

#if ORRERY_HAS_CRYPTO

namespace {

struct Crypto {
  decltype(&::EVP_CIPHER_CTX_new) ctx_new = nullptr;
  decltype(&::EVP_CIPHER_CTX_free) ctx_free = nullptr;
  decltype(&::EVP_CIPHER_CTX_ctrl) ctx_ctrl = nullptr;
  decltype(&::EVP_aes_128_gcm) aes_128_gcm = nullptr;
  decltype(&::EVP_CipherInit_ex) init = nullptr;
  decltype(&::EVP_CipherUpdate) update = nullptr;
  decltype(&::EVP_CipherFinal_ex) final = nullptr;
  bool good = false;

  Crypto() {
    // Never closed again: it leaves exit handlers behind.
    void* const handle = dlopen("libcrypto.so.3", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (handle == nullptr) return;
    const auto find = [&](const char* name, auto& function) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, name));
      return function != nullptr;
    };
    good = find("EVP_CIPHER_CTX_new", ctx_new) && find("EVP_CIPHER_CTX_free", ctx_free) &&
           find("EVP_CIPHER_CTX_ctrl", ctx_ctrl) && find("EVP_aes_128_gcm", aes_128_gcm) &&
           find("EVP_CipherInit_ex", init) && find("EVP_CipherUpdate", update) &&
           find("EVP_CipherFinal_ex", final);
  }
};

const Crypto& crypto() {
  static const Crypto* const opened = new Crypto;  // never destroyed: threads may still use it at the end
  return *opened;
}

EVP_CIPHER_CTX* cipher(void* context) { return static_cast<EVP_CIPHER_CTX*>(context); }
const unsigned char* text(const std::byte* bytes) { return reinterpret_cast<const unsigned char*>(bytes); }
unsigned char* text(std::byte* bytes) { return reinterpret_cast<unsigned char*>(bytes); }

}  // namespace

bool Sealer::is_usable(std::string* why) {
  if (!crypto().good) *why = "encryption needs OpenSSL 3 (libcrypto.so.3), which cannot be loaded";
  return crypto().good;
}

Result<std::unique_ptr<Sealer>> Sealer::open(const AuthKey& key, bool seals, std::string* why) {
  if (!is_usable(why)) return Errc::unsupported;
  const Crypto& c = crypto();
  EVP_CIPHER_CTX* const context = c.ctx_new();
  if (context == nullptr) return Errc::no_memory;
  std::unique_ptr<Sealer> sealer(new Sealer(context));
  std::array<std::byte, 16> bytes;
  put(bytes.data(), key[0], 8);
  put(bytes.data() + 8, key[1], 8);
  if (c.init(context, c.aes_128_gcm(), nullptr, text(bytes.data()), nullptr, seals ? 1 : 0) != 1) {
    *why = "AES-128-GCM of libcrypto cannot be used";
    return Errc::unsupported;
  }
  return sealer;
}

Sealer::~Sealer() { crypto().ctx_free(cipher(context_)); }

bool Sealer::seal(const SealHead& head, std::span<const std::byte> frame, std::span<std::byte> out) {
  const Crypto& c = crypto();
  put(out.data(), kMagic, 4);
  put(out.data() + 4, kVersion, 4);
  put(out.data() + 8, head.source, 4);
  put(out.data() + 12, head.target, 4);
  put(out.data() + 16, head.counter, 8);
  const auto nonce = nonce_of(head.counter);
  int length = 0;
  std::byte* const body = out.data() + kSealHeadBytes;
  return c.init(cipher(context_), nullptr, nullptr, nullptr, nonce.data(), -1) == 1 &&
         c.update(cipher(context_), nullptr, &length, text(out.data()), kSealHeadBytes) == 1 &&
         c.update(cipher(context_), text(body), &length, text(frame.data()),
                  static_cast<int>(frame.size())) == 1 &&
         c.final(cipher(context_), text(body + frame.size()), &length) == 1 &&
         c.ctx_ctrl(cipher(context_), EVP_CTRL_AEAD_GET_TAG, kSealTagBytes, body + frame.size()) == 1;
}

bool Sealer::unseal(std::span<const std::byte> bytes, std::span<std::byte> out) {
  const auto head = read_seal_head(bytes);
  if (!head || out.size() != bytes.size() - kSealBytes) return false;
  const Crypto& c = crypto();
  const auto nonce = nonce_of(head->counter);
  std::array<std::byte, kSealTagBytes> tag;
  std::memcpy(tag.data(), bytes.data() + bytes.size() - kSealTagBytes, tag.size());
  int length = 0;
  // A block behind the end for what final() may write; GCM writes nothing.
  std::array<unsigned char, 16> end{};
  return c.init(cipher(context_), nullptr, nullptr, nullptr, nonce.data(), -1) == 1 &&
         c.update(cipher(context_), nullptr, &length, text(bytes.data()), kSealHeadBytes) == 1 &&
         c.update(cipher(context_), text(out.data()), &length, text(bytes.data() + kSealHeadBytes),
                  static_cast<int>(out.size())) == 1 &&
         c.ctx_ctrl(cipher(context_), EVP_CTRL_AEAD_SET_TAG, kSealTagBytes, tag.data()) == 1 &&
         c.final(cipher(context_), end.data(), &length) == 1;
}

#else

bool Sealer::is_usable(std::string* why) {
  *why = "this build has no encryption: OpenSSL 3 (libssl-dev) was not there";
  return false;
}
Result<std::unique_ptr<Sealer>> Sealer::open(const AuthKey&, bool, std::string* why) {
  (void)is_usable(why);
  return Errc::unsupported;
}
Sealer::~Sealer() { (void)context_; }
bool Sealer::seal(const SealHead&, std::span<const std::byte>, std::span<std::byte>) { return false; }
bool Sealer::unseal(std::span<const std::byte>, std::span<std::byte>) { return false; }

#endif

}  // namespace orrery::wire
