// Secrets that no identity replaces: the secret of signed links, that of callbacks, the key of metrics, and the URL with which the
// scaler counts messages. Somebody puts them in; see the how-to.
param name string
param location string
param readers array

// Key Vault Secrets User
var readRole = '4633458b-17de-408a-b874-0445c86b69e6'

resource vault 'Microsoft.KeyVault/vaults@2023-07-01' = {
  name: '${name}-vault'
  location: location
  properties: {
    tenantId: subscription().tenantId
    sku: {
      family: 'A'
      name: 'standard'
    }
    enableRbacAuthorization: true
    enableSoftDelete: true
    enablePurgeProtection: true
  }
}

resource assignments 'Microsoft.Authorization/roleAssignments@2022-04-01' = [for reader in readers: {
  name: guid(vault.id, reader, readRole)
  scope: vault
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', readRole)
    principalId: reader
    principalType: 'ServicePrincipal'
  }
}]

output uri string = vault.properties.vaultUri
