import Testing

@testable import LarderService

@Suite struct TLSCredentialsTests {
  @Test func `settings without a certificate are an error`() {
    #expect(throws: TLSFileError.self) { try TLSCredentials(TLSSettings()) }
  }
}
