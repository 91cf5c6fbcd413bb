// The pipeline that copies public files. geomill starts it, checks what it has copied, and moves it into place.
param name string
param location string
param silverAccount string
param externalAccount string
param engineId string

// Storage Blob Data Reader, Storage Blob Data Contributor, Data Factory Contributor.
var readRole = '2a2b9908-6ea1-4ae2-8e65-a410df84e7d1'
var writeRole = 'ba92f5b4-2d11-453d-a403-e96b0029c9fe'
var factoryRole = '673868aa-7521-48a0-acc6-0f60742d39f5'

resource silver 'Microsoft.Storage/storageAccounts@2023-05-01' existing = {
  name: silverAccount
}

resource external 'Microsoft.Storage/storageAccounts@2023-05-01' existing = {
  name: externalAccount
}

resource factory 'Microsoft.DataFactory/factories@2018-06-01' = {
  name: '${name}-factory'
  location: location
  identity: {
    type: 'SystemAssigned'
  }
}

resource reads 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(silver.id, factory.id, readRole)
  scope: silver
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', readRole)
    principalId: factory.identity.principalId
    principalType: 'ServicePrincipal'
  }
}

resource writes 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(external.id, factory.id, writeRole)
  scope: external
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', writeRole)
    principalId: factory.identity.principalId
    principalType: 'ServicePrincipal'
  }
}

resource starts 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(factory.id, engineId, factoryRole)
  scope: factory
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', factoryRole)
    principalId: engineId
    principalType: 'ServicePrincipal'
  }
}

resource sourceService 'Microsoft.DataFactory/factories/linkedservices@2018-06-01' = {
  parent: factory
  name: 'silver'
  properties: {
    type: 'AzureBlobStorage'
    typeProperties: {
      serviceEndpoint: silver.properties.primaryEndpoints.blob
      accountKind: 'StorageV2'
    }
  }
}

resource sinkService 'Microsoft.DataFactory/factories/linkedservices@2018-06-01' = {
  parent: factory
  name: 'external'
  properties: {
    type: 'AzureBlobStorage'
    typeProperties: {
      serviceEndpoint: external.properties.primaryEndpoints.blob
      accountKind: 'StorageV2'
    }
  }
}

resource datasets 'Microsoft.DataFactory/factories/datasets@2018-06-01' = [for side in [
  'silver'
  'external'
]: {
  parent: factory
  name: '${side}_file'
  properties: {
    type: 'Binary'
    linkedServiceName: {
      type: 'LinkedServiceReference'
      referenceName: side
    }
    parameters: {
      container: {
        type: 'String'
      }
      folder: {
        type: 'String'
      }
      file: {
        type: 'String'
      }
    }
    typeProperties: {
      location: {
        type: 'AzureBlobStorageLocation'
        container: {
          value: '@dataset().container'
          type: 'Expression'
        }
        folderPath: {
          value: '@dataset().folder'
          type: 'Expression'
        }
        fileName: {
          value: '@dataset().file'
          type: 'Expression'
        }
      }
    }
  }
  dependsOn: [
    sourceService
    sinkService
  ]
}]

resource pipeline 'Microsoft.DataFactory/factories/pipelines@2018-06-01' = {
  parent: factory
  name: 'geomill-export'
  properties: {
    description: 'Copies the files of one part of an export, unchanged. Only geomill starts it.'
    parameters: {
      exportId: {
        type: 'String'
      }
      files: {
        type: 'Array'
      }
    }
    activities: [
      {
        name: 'each_file'
        type: 'ForEach'
        typeProperties: {
          items: {
            value: '@pipeline().parameters.files'
            type: 'Expression'
          }
          batchCount: 20
          activities: [
            {
              name: 'copy'
              type: 'Copy'
              policy: {
                timeout: '0.06:00:00'
                retry: 2
                retryIntervalInSeconds: 30
              }
              inputs: [
                {
                  type: 'DatasetReference'
                  referenceName: 'silver_file'
                  parameters: {
                    container: '@item().sourceContainer'
                    folder: '@substring(item().sourcePath, 0, lastIndexOf(item().sourcePath, \'/\'))'
                    file: '@last(split(item().sourcePath, \'/\'))'
                  }
                }
              ]
              outputs: [
                {
                  type: 'DatasetReference'
                  referenceName: 'external_file'
                  parameters: {
                    container: '@item().targetContainer'
                    folder: '@substring(item().targetPath, 0, lastIndexOf(item().targetPath, \'/\'))'
                    file: '@last(split(item().targetPath, \'/\'))'
                  }
                }
              ]
              typeProperties: {
                source: {
                  type: 'BinarySource'
                  storeSettings: {
                    type: 'AzureBlobStorageReadSettings'
                  }
                }
                sink: {
                  type: 'BinarySink'
                  storeSettings: {
                    type: 'AzureBlobStorageWriteSettings'
                  }
                }
              }
            }
          ]
        }
      }
    ]
  }
  dependsOn: [
    datasets
  ]
}

output id string = factory.id
