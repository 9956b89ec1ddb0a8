/// The version of the server, the client and the commands.
package let softwareVersion = "0.1.0"
