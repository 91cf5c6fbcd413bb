// One identity for each kind of process, each of which may pull the image.
param name string
param location string
param processes array
param registryName string

// AcrPull
var pullRole = '7f951dda-4ed3-4680-a7ca-43fe172d538d'

resource registry 'Microsoft.ContainerRegistry/registries@2023-07-01' existing = {
  name: registryName
}

resource identities 'Microsoft.ManagedIdentity/userAssignedIdentities@2023-01-31' = [for process in processes: {
  name: '${name}-${process}'
  location: location
}]

resource pulls 'Microsoft.Authorization/roleAssignments@2022-04-01' = [for (process, number) in processes: {
  name: guid(registry.id, '${name}-${process}', pullRole)
  scope: registry
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', pullRole)
    principalId: identities[number].properties.principalId
    principalType: 'ServicePrincipal'
  }
}]

// In the order of the processes.
output ids array = [for (process, number) in processes: identities[number].id]
output names array = [for (process, number) in processes: identities[number].name]
output clients array = [for (process, number) in processes: identities[number].properties.clientId]
output principals array = [for (process, number) in processes: identities[number].properties.principalId]
