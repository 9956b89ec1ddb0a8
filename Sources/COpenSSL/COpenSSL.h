// OpenSSL 3, found by pkg-config, and functions for what it defines as macros, which Swift doesn't import.
#pragma once

#if !__has_include(<openssl/ssl.h>)
#error "OpenSSL is missing: sudo apt-get install libedit-dev libpq-dev libsqlite3-dev libssl-dev libsystemd-dev libyaml-dev pkg-config zlib1g-dev"
#endif
#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/sha.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

// What most functions do is at the macro of the same name: SSL_CTX_set_mode(3) and so on.

static inline void COpenSSL_SSL_CTX_set_mode(SSL_CTX *context, long mode) { SSL_CTX_set_mode(context, mode); }

static inline int COpenSSL_SSL_CTX_set_min_proto_version(SSL_CTX *context, int version) {
  return SSL_CTX_set_min_proto_version(context, version);
}

static inline int COpenSSL_SSL_CTX_set1_groups_list(SSL_CTX *context, const char *groups) {
  return SSL_CTX_set1_groups_list(context, groups);
}

static inline int COpenSSL_SSL_CTX_add1_chain_cert(SSL_CTX *context, X509 *certificate) {
  return SSL_CTX_add1_chain_cert(context, certificate);
}

static inline void COpenSSL_SSL_CTX_set_options(SSL_CTX *context) {
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
}

static inline void COpenSSL_SSL_CTX_set_read_ahead(SSL_CTX *context, int yes) { SSL_CTX_set_read_ahead(context, yes); }

static inline void COpenSSL_SSL_CTX_set_tlsext_servername(
    SSL_CTX *context, int (*callback)(SSL *, int *, void *), void *argument) {
  SSL_CTX_set_tlsext_servername_callback(context, callback);
  SSL_CTX_set_tlsext_servername_arg(context, argument);
}

static inline int COpenSSL_SSL_set_tlsext_host_name(SSL *ssl, const char *name) {
  return SSL_set_tlsext_host_name(ssl, name);
}

static inline void COpenSSL_count_key_update(
    int isSent, int version, int type, const void *bytes, size_t count, SSL *ssl, void *counter) {
  if (!isSent && type == SSL3_RT_HANDSHAKE && count > 0 && *(const unsigned char *)bytes == SSL3_MT_KEY_UPDATE) {
    ++*(unsigned int *)counter;
  }
}

// Lets a counter count the KeyUpdate messages of the peer. It has to outlive the connection.
static inline void COpenSSL_SSL_count_key_updates(SSL *ssl, unsigned int *counter) {
  SSL_set_msg_callback(ssl, COpenSSL_count_key_update);
  SSL_set_msg_callback_arg(ssl, counter);
}

static inline void COpenSSL_BIO_set_retry_read(BIO *bio) { BIO_set_retry_read(bio); }

static inline void COpenSSL_BIO_clear_retry_flags(BIO *bio) { BIO_clear_retry_flags(bio); }

static inline int COpenSSL_sk_GENERAL_NAME_num(const GENERAL_NAMES *names) { return sk_GENERAL_NAME_num(names); }

static inline const GENERAL_NAME *COpenSSL_sk_GENERAL_NAME_value(const GENERAL_NAMES *names, int index) {
  return sk_GENERAL_NAME_value(names, index);
}

// The text of a name in a subject's alternative names; NULL if it is not a name of this type (`GEN_DNS` or `GEN_URI`).
static inline const ASN1_IA5STRING *COpenSSL_GENERAL_NAME_text(const GENERAL_NAME *name, int type) {
  return name->type == type ? name->d.ia5 : NULL;
}

// How the names in certificates are compared: a wildcard is a whole label, and the common name doesn't count (RFC 9525).
static const unsigned int COpenSSL_host_flags = X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT;

// Prints a name as in "CN=db.example,O=Example", without escaping what is not ASCII.
static inline int COpenSSL_X509_NAME_print(BIO *out, const X509_NAME *name) {
  return X509_NAME_print_ex(out, name, 0, XN_FLAG_RFC2253 & ~ASN1_STRFLGS_ESC_MSB);
}

static inline int COpenSSL_sk_X509_REVOKED_num(X509_CRL *list) {
  return sk_X509_REVOKED_num(X509_CRL_get_REVOKED(list));
}

static inline const ASN1_INTEGER *COpenSSL_X509_REVOKED_serial(X509_CRL *list, int index) {
  return X509_REVOKED_get0_serialNumber(sk_X509_REVOKED_value(X509_CRL_get_REVOKED(list), index));
}

// Makes a certificate the only trust anchor of a verification.
static inline int COpenSSL_X509_STORE_CTX_trust_only(X509_STORE_CTX *context, X509 *certificate) {
  STACK_OF(X509) *anchors = sk_X509_new_null();
  if (anchors == NULL || sk_X509_push(anchors, certificate) == 0) {
    sk_X509_free(anchors);
    return 0;
  }
  X509_STORE_CTX_set0_trusted_stack(context, anchors);
  X509_STORE_CTX_set_flags(context, X509_V_FLAG_PARTIAL_CHAIN);
  int result = X509_verify_cert(context);
  X509_STORE_CTX_set0_trusted_stack(context, NULL);
  sk_X509_free(anchors);
  return result;
}

// Keys for tests.

static inline EVP_PKEY *COpenSSL_EVP_EC_gen(const char *curve) { return EVP_EC_gen(curve); }

static inline EVP_PKEY *COpenSSL_EVP_RSA_gen(unsigned int bits) { return EVP_RSA_gen(bits); }

static inline EVP_PKEY *COpenSSL_EVP_ED25519_gen(void) { return EVP_PKEY_Q_keygen(NULL, NULL, "ED25519"); }
